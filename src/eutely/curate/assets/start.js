// The page is painted first, then the scripts run: without a graphics card 3D takes a while to start.
"use strict";

const list = document.currentScript.dataset.scripts.split(" ");
requestAnimationFrame(() => setTimeout(() => {
  for (const name of list) {
    const script = document.createElement("script");
    script.src = `assets/${name}`;
    script.async = false; // in this order
    document.body.append(script);
  }
}));
