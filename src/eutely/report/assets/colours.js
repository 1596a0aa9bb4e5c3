// Colours of cells and values: bright on a dark background, safe for colour-blind readers.
"use strict";

const SCALES = {
  good: [[0.93, 0.36, 0.22], [0.96, 0.72, 0.36], [0.88, 0.90, 0.70], [0.38, 0.76, 0.80], [0.16, 0.56, 0.78]],
  amount: [[0.33, 0.27, 0.66], [0.24, 0.49, 0.75], [0.20, 0.70, 0.62], [0.62, 0.83, 0.36], [0.99, 0.91, 0.35]],
};

const GROUPS = ["#4cc9f0", "#ff9f5a", "#7bd88f", "#f7768e", "#b39df3", "#e5c76b", "#4fd6be", "#ff8fc7",
  "#8fb4ff", "#c3e88d", "#ff7043", "#67a7c9", "#d0a8ff", "#f2e394", "#5fd068", "#c98b6b",
  "#a0c4ff", "#d6e04d", "#e07be0", "#7f9cf5"];
const GREY = [0.52, 0.56, 0.62];

function blend(scale, share) {
  const stops = SCALES[scale], at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(at), stops.length - 2), part = at - first;
  return stops[first].map((value, k) => value + part * (stops[first + 1][k] - value));
}

function fromHex(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
}

function css(colour, alpha = 1) {
  return `rgba(${colour.map((value) => Math.round(255 * value)).join(",")},${alpha})`;
}

// Hash of a name, so that its shade is the same on every page.
function hash(text) {
  let value = 2166136261;
  for (const letter of text) value = Math.imul(value ^ letter.codePointAt(0), 16777619) >>> 0;
  value = Math.imul(value ^ (value >>> 15), 2246822519) >>> 0;
  return (value ^ (value >>> 13)) >>> 0;
}

function hsl(hue, saturation, lightness) {
  const a = saturation * Math.min(lightness, 1 - lightness);
  return [0, 8, 4].map((n) => {
    const k = (n + 12 * hue) % 12;
    return lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  });
}

// Hue changes along the body; neighbours differ in shade.
function bodyColours(names, means) {
  const order = names.map((_, i) => i).sort((i, j) => means[3 * i] - means[3 * j]);
  const colours = new Array(names.length);
  order.forEach((cell, rank) => {
    const seed = hash(names[cell] || `cell ${cell}`), dice = (k) => ((seed >>> k) & 255) / 255;
    const hue = 0.02 + 0.83 * rank / Math.max(1, names.length - 1) + 0.07 * (dice(0) - 0.5);
    colours[cell] = hsl((hue + 1) % 1, 0.55 + 0.35 * dice(8), 0.5 + 0.22 * dice(16));
  });
  return colours;
}
