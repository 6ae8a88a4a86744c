// bundle.mjs OUT: the page with its script and styles in it; /*DATA*/ is left for the command to fill in.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const result = await build({
  entryPoints: [join(here, "page.js")],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2021",
  legalComments: "inline",
  loader: { ".css": "empty" },  // styles are put in below
  write: false,
});
const styles = [join(here, "node_modules/uplot/dist/uPlot.min.css"), join(here, "node_modules/d3-flame-graph/dist/d3-flamegraph.css"), join(here, "page.css")];
const style = styles.map((path) => readFileSync(path, "utf8")).join("\n");
const script = result.outputFiles[0].text.replaceAll("</script", "<\\/script");
const page = readFileSync(join(here, "page.html"), "utf8");
writeFileSync(process.argv[2], page.replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script));
