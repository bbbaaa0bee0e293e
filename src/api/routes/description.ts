import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { EngineError } from '../../engine/index.ts';
import { describeApi } from '../openapi/describe.ts';
import { openRoute, type Route, type RouteGroup } from '../route.ts';
import { anyObject } from '../schemas/values.ts';
import { findViewerFile, PAGE_HEADERS, viewerPage } from '../viewer/viewer.ts';

/**
 * The description of the API, and a page that shows it. Both tell nothing about this server but its version, so they ask for
 * no key: a browser could not send one with an address.
 * @param groups all routes, these included; asked when the description is first read
 */
export function descriptionRoutes(groups: () => readonly RouteGroup[]): readonly Route[] {
  let text: string | undefined;
  // Some 80 ms of one core, which most servers never spend.
  const describe = (version: string) => (text ??= JSON.stringify(describeApi(groups(), version)));
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
      handle({ api, response }) {
        response.setHeader('content-type', 'application/json; charset=utf-8');
        response.end(describe(api.version));
      },
    }),
    openRoute({
      method: 'get',
      path: '/docs',
      name: 'getDocsPage',
      summary: 'Shows the description of this API as a page',
      description: 'For a browser. The page comes with everything it needs and asks no other host for anything.',
      replies: {
        200: {
          description: 'The page.',
          media: [{ type: 'text/html', schema: z.string(), example: '<!doctype html>' }],
        },
      },
      handle({ request, response }) {
        for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
        response.setHeader('content-type', 'text/html; charset=utf-8');
        response.end(viewerPage({ hasTrailingSlash: request.path.endsWith('/') }));
      },
    }),
    openRoute({
      method: 'get',
      path: '/docs/:file',
      name: 'getDocsFile',
      summary: 'Sends a script or style of the page',
      params: { file: { description: 'Its name.', example: 'start.js' } },
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
        const file = findViewerFile(params.file);
        if (file === undefined) throw new EngineError('not_found', 'no such path');
        const bytes = await readFile(file.path);
        response.setHeader('content-type', `${file.type}; charset=utf-8`);
        response.setHeader('cache-control', 'max-age=3600');
        response.end(bytes);
      },
    }),
  ];
}
