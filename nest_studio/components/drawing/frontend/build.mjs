// Bundles src/ into ../assets/drawing.js, one module that needs nothing else.
// Its first line carries the digest of what it was built from; a test compares.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "assets");

const sources = [
  "build.mjs",
  "package-lock.json",
  "package.json",
  ...readdirSync(join(here, "src")).map((name) => `src/${name}`),
].sort();
const digest = createHash("sha256");
for (const name of sources) digest.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");

await build({
  absWorkingDir: here,
  entryPoints: ["src/index.js"],
  outfile: join(assets, "drawing.js"),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  banner: { js: `/* Nest Studio drawing, sources ${digest.digest("hex")}; licences: LICENSES.txt */` },
});

const packages = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8")).packages;
const licences = Object.entries(packages)
  .filter(([path, entry]) => path && !entry.dev)
  .map(([path, entry]) => {
    const files = readdirSync(join(here, path)).filter((name) => /^licen[cs]e/i.test(name));
    const text = files.map((name) => readFileSync(join(here, path, name), "utf8").trim()).join("\n");
    return `${path.replace("node_modules/", "")} ${entry.version} (${entry.license})\n\n${text}\n`;
  });
writeFileSync(
  join(assets, "LICENSES.txt"),
  `drawing.js contains these packages.\n\n${licences.join(`\n${"-".repeat(72)}\n\n`)}`,
);
