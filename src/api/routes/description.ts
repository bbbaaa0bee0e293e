import { z } from 'zod';
import { EngineError, takeTurn } from '../../engine/index.ts';
import { describeApiInSteps } from '../openapi/describe.ts';
import { openRoute, type Route, type RouteGroup } from '../route.ts';
import { anyObject } from '../schemas/values.ts';
import { readViewerFile, VIEWER_HEADERS, VIEWER_PAGE } from '../viewer/viewer.ts';

/**
 * Makes the routes of the API's description and of the page that shows it. They need no key: a browser cannot send one
 * when it opens an address, and they reveal nothing about this server but its version.
 * @param groups returns the groups of all routes, these included; called when the description is first requested
 */
export function descriptionRoutes(groups: () => readonly RouteGroup[]): readonly Route[] {
  let bytes: Promise<Buffer> | undefined;
  // Made on the first request, as it takes some 100 ms of one core and most servers are never asked for it.
  const describe = (version: string) => (bytes ??= describeInTurns(groups(), version));
  return [
    openRoute({
      method: 'get',
      path: '/openapi.json',
      name: 'getDescription',
      summary: 'Sends the description of this API in OpenAPI 3.1',
      replies: {
        200: {
          description: 'The description.',
          json: anyObject,
          example: { openapi: '3.1.1', info: { title: 'Cairn' } },
        },
      },
      async handle({ api, response }) {
        const bytes = await describe(api.version);
        response.setHeader('content-type', 'application/json; charset=utf-8');
        response.end(bytes);
      },
    }),
    openRoute({
      method: 'get',
      path: '/docs',
      name: 'getDocsPage',
      summary: 'Shows the description of this API as a page',
      description: 'The page is for a browser. It loads files of this server alone.',
      replies: {
        200: {
          description: 'The page.',
          media: [{ type: 'text/html', schema: z.string(), example: '<!doctype html>' }],
        },
      },
      handle({ response }) {
        response.setHeaders(VIEWER_HEADERS);
        response.setHeader('content-type', 'text/html; charset=utf-8');
        response.end(VIEWER_PAGE);
      },
    }),
    openRoute({
      method: 'get',
      path: '/docs/:file',
      name: 'getDocsFile',
      summary: 'Sends a script or style of the page',
      params: { file: { description: 'Name of the file.', example: 'start.js' } },
      replies: {
        200: {
          description: 'The file.',
          media: [
            { type: 'text/javascript', schema: z.string(), example: "'use strict';" },
            { type: 'text/css', schema: z.string(), example: 'body { margin: 0 }' },
          ],
        },
      },
      errors: { not_found: 'The page has no such file.' },
      async handle({ params, response }) {
        const file = await readViewerFile(params.file);
        if (file === undefined) throw new EngineError('not_found', 'no such path');
        response.setHeader('content-type', `${file.type}; charset=utf-8`);
        response.setHeader('cache-control', 'max-age=3600');
        response.end(file.bytes);
      },
    }),
  ];
}

/**
 * Makes the JSON of the API description step by step, and lets other requests run between the steps. All replies share
 * its bytes; a text would be encoded anew for each of them, which takes some 8 ms.
 */
async function describeInTurns(groups: readonly RouteGroup[], version: string): Promise<Buffer> {
  const steps = describeApiInSteps(groups, version);
  for (;;) {
    const { done, value } = steps.next();
    await takeTurn();
    if (done) return Buffer.from(JSON.stringify(value));
  }
}
