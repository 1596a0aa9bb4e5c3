// Draws ellipsoids and lines in 3D, exactly and without a library. The camera looks along -z of the
// view, without perspective: lengths can be compared, and the outline of an ellipsoid is an ellipse.
"use strict";

const NIGHT = [0.035, 0.045, 0.075];

function program(gl, vertex, fragment) {
  const linked = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(linked, shader);
  }
  gl.linkProgram(linked);
  if (!gl.getProgramParameter(linked, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(linked));
  const names = ["turn", "middle", "zoom", "pan", "gap", "reach", "night"];
  return { linked, at: Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(linked, name)])) };
}

// Rows of a rotation about an axis of the screen (0: x, 1: y, 2: z).
function rotation(axis, angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  if (axis === 0) return [1, 0, 0, 0, c, -s, 0, s, c];
  if (axis === 1) return [c, 0, s, 0, 1, 0, -s, 0, c];
  return [c, -s, 0, s, c, 0, 0, 0, 1];
}

function times(a, b) {
  const out = new Array(9);
  for (let i = 0; i < 3; i++)
    for (let j = 0; j < 3; j++)
      out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
  return out;
}

// places: n x 4 (centre, lift), forms: n x 6 (covariance), tints: n x 4.
class Viewer {
  constructor(stage) {
    this.stage = stage;
    this.canvas = stage.querySelector("canvas.scene");
    this.over = stage.querySelector("canvas.over");
    this.gl = this.canvas.getContext("webgl2", { antialias: true, alpha: false });
    this.bodies = { count: 0, places: new Float32Array(0), forms: new Float32Array(0) };
    this.threads = 0;
    this.apart = 0;            // 1: bodies of different lift are drawn apart; 0: overlaid
    this.annotate = () => {};  // draws text and rings on top
    this.onHover = this.onPick = () => {};
    this.home = rotation(0, -0.35);
    this.turn = this.home;
    this.pan = [0, 0];
    this.magnify = 1;
    if (this.gl) this.prepare();
    listen(this);
    new ResizeObserver(() => this.ask()).observe(stage);
  }

  prepare() {
    const gl = this.gl;
    this.bodyProgram = program(gl, BODY_VERTEX, BODY_FRAGMENT);
    this.lineProgram = program(gl, LINE_VERTEX, LINE_FRAGMENT);
    this.buffers = {};
    for (const name of ["places", "forms", "tints", "ends", "inks"]) this.buffers[name] = gl.createBuffer();
    this.bodyArray = this.layout([["places", 4, 16, 0], ["forms", 3, 24, 0], ["forms", 3, 24, 12], ["tints", 4, 16, 0]], 1);
    this.lineArray = this.layout([["ends", 4, 16, 0], ["inks", 4, 16, 0]], 0);
  }

  layout(fields, divisor) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    fields.forEach(([name, size, stride, offset], at) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, gl.FLOAT, false, stride, offset);
      gl.vertexAttribDivisor(at, divisor);
    });
    gl.bindVertexArray(null);
    return array;
  }

  fill(name, values) {
    if (!this.gl) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.DYNAMIC_DRAW);
  }

  setBodies(places, forms, tints) {
    this.bodies = { count: places.length / 4, places, forms };
    this.fill("places", places);
    this.fill("forms", forms);
    this.fill("tints", tints);
    this.measure();
    this.ask();
  }

  setLines(ends, inks) {
    this.threads = ends.length / 4;
    this.fill("ends", ends);
    this.fill("inks", inks);
    this.ask();
  }

  measure() {
    const { places, count } = this.bodies;
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < count; i++)
      for (let k = 0; k < 3; k++) {
        low[k] = Math.min(low[k], places[4 * i + k]);
        high[k] = Math.max(high[k], places[4 * i + k]);
      }
    this.middle = low.map((value, k) => (value + high[k]) / 2);
    this.round = Math.max(high[1] - low[1], high[2] - low[2]) > 0.35 * (high[0] - low[0]);
    this.radius = 0.55 * Math.hypot(...high.map((value, k) => value - low[k])) || 1;
  }

  // Position of a point in the view: x, y, z in units of the data.
  seen(x, y, z, lift) {
    const t = this.turn, m = this.middle;
    x -= m[0]; y -= m[1]; z -= m[2];
    return [t[0] * x + t[1] * y + t[2] * z + lift * this.gap[0],
            t[3] * x + t[4] * y + t[5] * z + lift * this.gap[1],
            t[6] * x + t[7] * y + t[8] * z];
  }

  // Sets gap and scale (pixels per unit) so that all bodies fit into the picture.
  frame() {
    const { places, count } = this.bodies;
    this.gap = [0, 0];
    let wide = 0, low = Infinity, high = -Infinity;
    for (let i = 0; i < count; i++) {
      const [x, y] = this.seen(places[4 * i], places[4 * i + 1], places[4 * i + 2], 0);
      wide = Math.max(wide, Math.abs(x));
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    const width = this.stage.clientWidth, height = this.stage.clientHeight, tall = high - low || 1;
    const across = (width - 90) / (2 * wide || 1);
    // Two long bodies are drawn one above the other, two round bodies side by side, far enough apart
    // to follow the lines between them at any zoom.
    if (this.round) {
      const apart = (magnify) => this.apart * 2.6 * wide / Math.sqrt(magnify);
      this.scale = this.magnify * Math.min((width - 90) / (2 * wide + apart(1)), (height - 100) / tall);
      this.gap = [-apart(this.magnify), 0];
    } else {
      const apart = (magnify) => this.apart * Math.max(1.6 * tall / Math.sqrt(magnify), 0.5 * height / across / magnify);
      this.scale = this.magnify * Math.min(across, (height - 100) / (tall + apart(1)));
      this.gap = [0, apart(this.magnify)];
    }
  }

  // Position on the stage of a point of the view, in CSS pixels.
  onStage([x, y]) {
    return [this.stage.clientWidth / 2 + x * this.scale + this.pan[0],
            this.stage.clientHeight / 2 - y * this.scale + this.pan[1]];
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    const gl = this.gl, width = this.stage.clientWidth, height = this.stage.clientHeight;
    if (!this.bodies.count || !width) return;
    const sharp = Math.min(window.devicePixelRatio || 1, 2);
    for (const canvas of [this.canvas, this.over]) {
      if (canvas.width !== Math.round(width * sharp) || canvas.height !== Math.round(height * sharp)) {
        canvas.width = Math.round(width * sharp);
        canvas.height = Math.round(height * sharp);
      }
    }
    this.frame();
    if (gl) this.paint(width, height);
    const ink = this.over.getContext("2d");
    ink.setTransform(sharp, 0, 0, sharp, 0, 0);
    ink.clearRect(0, 0, width, height);
    this.annotate(ink, width, height);
  }

  paint(width, height) {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...NIGHT, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    for (const [used, array] of [[this.bodyProgram, this.bodyArray], [this.lineProgram, this.lineArray]]) {
      gl.useProgram(used.linked);
      gl.uniformMatrix3fv(used.at.turn, true, this.turn);
      gl.uniform3fv(used.at.middle, this.middle);
      gl.uniform2f(used.at.zoom, 2 * this.scale / width, 2 * this.scale / height);
      gl.uniform2f(used.at.pan, 2 * this.pan[0] / width, -2 * this.pan[1] / height);
      gl.uniform2f(used.at.gap, ...this.gap);
      gl.uniform1f(used.at.reach, 1 / (1.2 * this.radius));
      gl.bindVertexArray(array);
      if (used === this.bodyProgram) {
        gl.uniform3fv(used.at.night, NIGHT);
        gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
        gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.bodies.count);
        gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
      } else if (this.threads) {
        gl.enable(gl.BLEND);
        gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
        gl.drawArrays(gl.LINES, 0, this.threads);
        gl.disable(gl.BLEND);
      }
    }
    gl.bindVertexArray(null);
  }

  // Centre of a body on the stage, and half its height there, in CSS pixels.
  where(body) {
    const { places, forms } = this.bodies, t = this.turn;
    const at = this.seen(...places.subarray(4 * body, 4 * body + 4));
    const f = forms.subarray(6 * body, 6 * body + 6);
    const half = Math.sqrt(
      t[3] * t[3] * f[0] + t[4] * t[4] * f[3] + t[5] * t[5] * f[5]
      + 2 * (t[3] * t[4] * f[1] + t[3] * t[5] * f[2] + t[4] * t[5] * f[4]));
    const [x, y] = this.onStage(at);
    return { x, y, depth: at[2], half: half * this.scale };
  }

  // The foremost body under a point of the stage (CSS pixels), or -1.
  pick(left, top) {
    const { places, forms, count } = this.bodies, t = this.turn;
    const x = (left - this.stage.clientWidth / 2 - this.pan[0]) / this.scale;
    const y = -(top - this.stage.clientHeight / 2 - this.pan[1]) / this.scale;
    let best = -1, front = -Infinity;
    for (let i = 0; i < count; i++) {
      const at = this.seen(places[4 * i], places[4 * i + 1], places[4 * i + 2], places[4 * i + 3]);
      const dx = x - at[0], dy = y - at[1];
      const f = 6 * i, s = [];
      for (const row of [0, 3, 6])
        s.push(forms[f] * t[row] + forms[f + 1] * t[row + 1] + forms[f + 2] * t[row + 2],
               forms[f + 1] * t[row] + forms[f + 3] * t[row + 1] + forms[f + 4] * t[row + 2],
               forms[f + 2] * t[row] + forms[f + 4] * t[row + 1] + forms[f + 5] * t[row + 2]);
      const dot = (a, b) => s[3 * a] * t[3 * b] + s[3 * a + 1] * t[3 * b + 1] + s[3 * a + 2] * t[3 * b + 2];
      const xx = dot(0, 0), xy = dot(0, 1), yy = dot(1, 1);
      const q = (yy * dx * dx - 2 * xy * dx * dy + xx * dy * dy) / (xx * yy - xy * xy);
      const near = Math.hypot(dx, dy) * this.scale < 4;  // tiny bodies can be picked as well
      if (q > 1 && !near) continue;
      const depth = at[2] + Math.sqrt(dot(2, 2)) * Math.sqrt(Math.max(0, 1 - q));
      if (depth > front) { front = depth; best = i; }
    }
    return best;
  }

  rotate(right, down) {
    this.turn = times(times(rotation(1, right), rotation(0, down)), this.turn);
    this.ask();
  }

  zoomAt(factor, left, top) {
    const magnify = Math.min(Math.max(this.magnify * factor, 0.5), 60), real = magnify / this.magnify;
    const x = left - this.stage.clientWidth / 2, y = top - this.stage.clientHeight / 2;
    this.pan = [x - (x - this.pan[0]) * real, y - (y - this.pan[1]) * real];
    this.magnify = magnify;
    this.ask();
  }

  reset() {
    this.turn = this.home;
    this.pan = [0, 0];
    this.magnify = 1;
    this.ask();
  }

  // Zoom in on a body, or on the middle between two bodies, as far as both and their names are to be seen.
  goTo(body, magnify, other = -1) {
    this.magnify = Math.max(this.magnify, magnify);
    this.pan = [0, 0];
    this.frame();
    let first = this.where(body), second = this.where(other < 0 ? body : other);
    for (let tries = 0; other >= 0 && tries < 8; tries++) {
      const wide = Math.abs(first.x - second.x) + 120, tall = Math.abs(first.y - second.y) + first.half + second.half + 90;
      const share = Math.min(this.stage.clientWidth / wide, this.stage.clientHeight / tall);
      if (share >= 1 || this.magnify <= 1) break;
      this.magnify = Math.max(1, this.magnify * Math.min(share, 0.9));
      this.frame();
      first = this.where(body);
      second = this.where(other);
    }
    this.pan = [(this.stage.clientWidth - first.x - second.x) / 2, (this.stage.clientHeight - first.y - second.y) / 2];
    this.ask();
  }
}

function listen(view) {
  const held = new Map(), stage = view.over;
  let moved = 0, active = false;
  const at = (event) => { const box = stage.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  stage.addEventListener("contextmenu", (event) => event.preventDefault());
  stage.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, at(event));
    moved = 0;
    active = true;
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    const now = at(event), last = held.get(event.pointerId);
    if (!last) { view.onHover(view.pick(...now), ...now); return; }
    const dx = now[0] - last[0], dy = now[1] - last[1];
    moved += Math.abs(dx) + Math.abs(dy);
    if (held.size === 2) {
      const other = [...held].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
      view.zoomAt(Math.hypot(now[0] - other[0], now[1] - other[1]) / (before || 1), ...other);
    } else if (event.shiftKey || event.buttons & 2) {
      view.pan = [view.pan[0] + dx, view.pan[1] + dy];
      view.ask();
    } else view.rotate(dx * 0.008, dy * 0.008);
    held.set(event.pointerId, now);
    view.onHover(-1);
  });
  const release = (event) => {
    if (held.delete(event.pointerId) && moved < 4 && event.type === "pointerup") view.onPick(view.pick(...at(event)));
  };
  stage.addEventListener("pointerup", release);
  stage.addEventListener("pointercancel", release);
  stage.addEventListener("pointerleave", () => { active = false; view.onHover(-1); });
  // The wheel scrolls the page until the picture is clicked, so that scrolling does not stop at it.
  stage.addEventListener("wheel", (event) => {
    if (!active && !event.ctrlKey) return;
    event.preventDefault();
    view.zoomAt(Math.exp(-0.0015 * event.deltaY), ...at(event));
  }, { passive: false });
  stage.addEventListener("dblclick", () => view.reset());
  stage.addEventListener("keydown", (event) => {
    const turns = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    const middle = [view.stage.clientWidth / 2, view.stage.clientHeight / 2];
    if (turns[event.key]) view.rotate(...turns[event.key]);
    else if (event.key === "+") view.zoomAt(1.25, ...middle);
    else if (event.key === "-") view.zoomAt(0.8, ...middle);
    else return;
    event.preventDefault();
  });
}
