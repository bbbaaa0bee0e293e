import { ROUTES } from '../../../src/api/routes.ts';
import type { Route } from '../../../src/api/route.ts';
import type { Reply, TestApi } from '../start-api.ts';

/** Ids of things that another user owns. */
export interface ForeignThings {
  readonly memory: string;
  readonly document: string;
  readonly job: string;
  readonly user: string;
}

/** A well-formed id that no memory, document or job has. */
const ABSENT = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';

/** Routes that a key bound to a user or tags may call, as their declaration says. */
export const boundRoutes = ROUTES.filter((route) => route.access !== 'anyone' && route.forBoundKeys === true);
/** Routes that need a key and refuse every key that is bound to a user or tags. */
export const refusingRoutes = ROUTES.filter((route) => route.access !== 'anyone' && route.forBoundKeys !== true);

/**
 * Calls each route that bound keys may call, once with ids of another user's things and once with ids that do not
 * exist. A caller must not be able to tell the two cases apart.
 * @returns one line for each route whose two replies differ, or whose reply contains one of `canaries`; empty if all is
 *   well
 */
export async function askForForeignThings(
  api: TestApi,
  key: string,
  { things, canaries }: { readonly things: ForeignThings; readonly canaries: readonly string[] },
): Promise<string[]> {
  const wrong: string[] = [];
  for (const route of boundRoutes) {
    const foreign = await send(api, route, { key, things });
    const absent = await send(api, route, {
      key,
      things: { memory: ABSENT, document: ABSENT, job: ABSENT, user: things.user },
    });
    const name = `${route.method} ${route.path}`;
    const shown = canaries.find((canary) => foreign.text.includes(canary));
    if (shown !== undefined) wrong.push(`${name}: shows ${shown}`);
    if (route.access === 'add') continue; // These name no thing that is there.
    if (foreign.status !== absent.status) wrong.push(`${name}: ${foreign.status} but ${absent.status} if absent`);
    else if (foreign.status >= 400 && foreign.body.detail !== absent.body.detail)
      wrong.push(`${name}: "${foreign.body.detail}" but "${absent.body.detail}" if absent`);
  }
  return wrong;
}

interface Target {
  readonly key: string;
  readonly things: ForeignThings;
}

async function send(api: TestApi, route: Route, { key, things }: Target): Promise<Reply> {
  const id = route.path.startsWith('/documents')
    ? things.document
    : route.path.startsWith('/jobs')
      ? things.job
      : route.path.startsWith('/users')
        ? things.user
        : things.memory;
  const path = route.path.replace(':id', id).replace(':name', 'canaryville').replace(':user_id', things.user);
  const body = bodyOf(route, things);
  // Clients of MCP must accept both.
  const headers = { accept: 'application/json, text/event-stream' };
  return api.request(route.method.toUpperCase(), path, {
    key,
    ...(body === undefined ? {} : { body }),
    ...(route.path.startsWith('/mcp') ? { headers } : {}),
  });
}

/** A message of MCP as clients of 2025 send it. */
const toolCall = (name: string, args: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Makes the body of a request about another user's memory; the body does not name that user. */
function bodyOf({ name }: Route, { memory }: ForeignThings): unknown {
  switch (name) {
    case 'addMemory':
      return { content: 'an own text' };
    case 'putItem':
      return { key: memory, content: 'an own text' };
    case 'moveNamespace':
      return { to: 'elsewhere' };
    case 'addMemories':
      return { items: [{ content: 'an own text' }] };
    case 'ingestDocument':
      return { content_type: 'md', text: '# An own text' };
    case 'ingestPage':
      return { url: 'https://example.com/' };
    case 'ingestDocuments':
      return { items: [{ text: '# An own text', content_type: 'md' }] };
    case 'replaceDocument':
      return { content_type: 'md', text: '# An own text' };
    case 'queryMemories':
      return { query: 'where is the canary', k: 50, min_score: 0, expand: ['neighbours', 'document'], explain: true };
    case 'explainMemory':
      return { query: 'where is the canary', memory_id: memory };
    case 'appendToLog':
      return { items: ['an own item'] };
    case 'replaceEndOfLog':
      return { from: 0, items: ['an own item'] };
    case 'reflect':
      return {};
    case 'linkMemories':
    case 'unlinkMemories':
      return { src: memory, dst: '01a1fe30-e25b-7576-a0c2-3c4e3646bd73', type: 'supports' };
    case 'supersedeMemory':
      return { old_id: memory, new_id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd73' };
    case 'contradictMemories':
      return { a: memory, b: '01a1fe30-e25b-7576-a0c2-3c4e3646bd73' };
    case 'reinforceMemory':
      return { id: memory };
    case 'patchMemory':
      return { title: 'taken over' };
    case 'deleteMemories':
      return { session_id: 'canary-session' };
    case 'callMcp':
      return toolCall('get_memory', { id: memory });
    case 'callMcpOfUser':
      return toolCall('recall', { query: 'where is the canary', min_score: 0 });
    default:
      return undefined;
  }
}
