// Programs of the graphics card: each ellipsoid is a rectangle, and each of its pixels computes its depth.
// Given a position in the picture, this depth follows from the covariance like a conditional Gaussian.
"use strict";

const BODY_VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec4 place;      // centre, and how far the body is shifted by the gap
layout(location = 1) in vec3 formX;      // covariance: xx, xy, xz
layout(location = 2) in vec3 formY;      // yy, yz, zz
layout(location = 3) in vec4 tint;       // colour, and its opacity before the background
uniform mat3 turn;
uniform vec3 middle;
uniform vec2 zoom, pan, gap;
uniform float reach;
out vec2 corner;
flat out vec3 flatForm;                  // inverse of the projected covariance
flat out vec4 slope;                     // depth per step in the picture (x, y); half depth at the centre; depth of the centre
flat out mat3 inverseForm;
flat out vec4 colour;
void main() {
  mat3 form = mat3(formX, vec3(formX.y, formY.xy), vec3(formX.z, formY.yz));
  mat3 seen = turn * form * transpose(turn);
  vec3 at = turn * (place.xyz - middle);
  at.xy += place.w * gap;
  vec2 ends[4] = vec2[4](vec2(-1, -1), vec2(1, -1), vec2(-1, 1), vec2(1, 1));
  corner = ends[gl_VertexID] * sqrt(vec2(seen[0][0], seen[1][1])) * 1.04;
  float determinant = seen[0][0] * seen[1][1] - seen[0][1] * seen[0][1];
  flatForm = vec3(seen[1][1], -seen[0][1], seen[0][0]) / determinant;
  vec2 mix = vec2(seen[0][2], seen[1][2]);
  slope.xy = vec2(flatForm.x * mix.x + flatForm.y * mix.y, flatForm.y * mix.x + flatForm.z * mix.y);
  slope.z = sqrt(max(seen[2][2] - dot(slope.xy, mix), 0.0));
  slope.w = at.z;
  inverseForm = inverse(seen);
  colour = tint;
  gl_Position = vec4((at.xy + corner) * zoom + pan, -at.z * reach, 1);
}`;

const BODY_FRAGMENT = `#version 300 es
precision highp float;
in vec2 corner;
flat in vec3 flatForm;
flat in vec4 slope;
flat in mat3 inverseForm;
flat in vec4 colour;
uniform float reach;
uniform vec3 night;
out vec4 pixel;
void main() {
  float q = flatForm.x * corner.x * corner.x + 2.0 * flatForm.y * corner.x * corner.y
          + flatForm.z * corner.y * corner.y;
  float cover = clamp((1.0 - q) / max(fwidth(q), 1e-6) + 0.5, 0.0, 1.0);
  if (cover <= 0.0) discard;
  float rise = dot(slope.xy, corner) + slope.z * sqrt(max(1.0 - q, 0.0));
  vec3 normal = normalize(inverseForm * vec3(corner, rise));
  float depth = slope.w + rise;
  gl_FragDepth = clamp(0.5 - 0.5 * depth * reach, 0.0, 1.0);
  vec3 sun = normalize(vec3(-0.35, 0.65, 0.68));
  float lit = 0.36 + 0.58 * max(dot(normal, sun), 0.0) + 0.16 * max(normal.z, 0.0);
  float shine = 0.30 * pow(max(dot(normal, normalize(sun + vec3(0, 0, 1))), 0.0), 40.0);
  float haze = mix(0.62, 1.0, clamp(0.5 + 0.5 * depth * reach * 3.0, 0.0, 1.0));
  vec3 shade = (colour.rgb * lit + shine) * haze;
  pixel = vec4(mix(night, shade, colour.a), cover);
}`;

const LINE_VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec4 place;
layout(location = 1) in vec4 tint;
uniform mat3 turn;
uniform vec3 middle;
uniform vec2 zoom, pan, gap;
uniform float reach;
out vec4 colour;
void main() {
  vec3 at = turn * (place.xyz - middle);
  at.xy += place.w * gap;
  colour = tint;
  gl_Position = vec4(at.xy * zoom + pan, -at.z * reach, 1);
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 colour;
out vec4 pixel;
void main() { pixel = colour; }`;
