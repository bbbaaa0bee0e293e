/**
 * Swagger UI, bundled, is the page that shows the description of the API. `npm run build` copies its files into the
 * compiled package. Installing Cairn therefore does not install `swagger-ui-dist`: 12 MB, with a dependency that
 * reports installations to its maker.
 */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EngineError } from '../../engine/index.ts';
import { pageHeaders } from '../page-headers.ts';

const VIEWER = 'swagger-ui-dist';
const FILES: Readonly<Record<string, { readonly type: string; readonly isOurs?: true }>> = {
  'swagger-ui-bundle.js': { type: 'text/javascript' },
  'swagger-ui.css': { type: 'text/css' },
  'start.js': { type: 'text/javascript', isOurs: true },
};

/** Headers of the page. `data:` serves the icons in the viewer's styles. */
export const VIEWER_HEADERS = pageHeaders({ 'style-src': "'self'", 'img-src': 'data:', 'base-uri': "'none'" });

/**
 * HTML of the page at `/docs`. Its addresses are relative, so that a proxy may serve it below another path.
 */
export const VIEWER_PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Cairn API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="./docs/swagger-ui.css">
    <script src="./docs/swagger-ui-bundle.js" defer></script>
    <script src="./docs/start.js" defer></script>
  </head>
  <body>
    <div id="api" data-description="./openapi.json"></div>
    <noscript>The description is at <a href="./openapi.json">openapi.json</a>.</noscript>
  </body>
</html>
`;

/**
 * Finds a file of the page by its name; undefined for any other name.
 * @throws EngineError `not_found` where the viewer is not installed
 */
export function findViewerFile(name: string): { readonly path: string; readonly type: string } | undefined {
  const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
  if (file === undefined) return undefined;
  const beside = path.join(import.meta.dirname, name);
  return { type: file.type, path: file.isOurs || fs.existsSync(beside) ? beside : installedFile(name) };
}

/**
 * Finds a file of the viewer in `node_modules`: a service that runs from its sources has it as development dependency.
 */
function installedFile(name: string): string {
  try {
    return fileURLToPath(import.meta.resolve(`${VIEWER}/${name}`));
  } catch (error) {
    throw new EngineError(
      'not_found',
      'the page comes with a built package, or with `npm ci`; /openapi.json is always there',
      { cause: error },
    );
  }
}
