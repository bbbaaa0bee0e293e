import { describeApi } from '../src/api/openapi/describe.ts';
import { ROUTE_GROUPS } from '../src/api/routes.ts';
import { renderPython } from './python-client.ts';
import { render } from './render.ts';
import { renderOperations, renderTypes } from './typescript-client.ts';

/** Returns the text of every file that is derived from the description of the API, by its path in the repository. */
export async function derivedFiles(): Promise<ReadonlyMap<string, string>> {
  const document = describeApi(ROUTE_GROUPS, '');
  return new Map([
    ['docs/reference/http-api.md', await render(document)],
    ['clients/python/cairn_memory/_generated.py', renderPython(document)],
    ['src/client/generated/types.ts', await renderTypes(document)],
    ['src/client/generated/operations.ts', await renderOperations(document)],
  ]);
}
