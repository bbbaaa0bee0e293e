/**
 * Package of Swagger UI, the page that shows the description of the API. `npm run build` copies its files into the
 * compiled package. Installing Cairn therefore does not install `swagger-ui-dist`, which has 12 MB and a dependency
 * that reports installations to its maker.
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

/** Headers of the page at `/docs`. `data:` admits the icons in the viewer's styles. */
export const VIEWER_HEADERS = pageHeaders({ 'style-src': "'self'", 'img-src': 'data:', 'base-uri': "'none'" });

/** HTML of the page at `/docs`. Its addresses are relative, so that a proxy may serve it under another path. */
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

/** Files that were read, by name. Replies share their bytes: thousands of clients may ask for them and read nothing. */
const filesRead = new Map<string, Promise<Buffer>>();

/**
 * Reads a file of the page by its name; undefined if the page has no file of this name. It is read once.
 * @throws EngineError `not_found` if the viewer is not installed
 */
export async function readViewerFile(
  name: string,
): Promise<{ readonly bytes: Buffer; readonly type: string } | undefined> {
  const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
  if (file === undefined) return undefined;
  const beside = path.join(import.meta.dirname, name);
  const place = file.isOurs || fs.existsSync(beside) ? beside : installedFile(name);
  const reading = filesRead.get(name) ?? fs.promises.readFile(place);
  filesRead.set(name, reading);
  reading.catch(() => filesRead.delete(name));
  return { type: file.type, bytes: await reading };
}

/**
 * Returns the path of a file of the viewer in `node_modules`, where a service that runs from its sources has it as a
 * development dependency.
 * @throws EngineError `not_found` if the package is not installed
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
