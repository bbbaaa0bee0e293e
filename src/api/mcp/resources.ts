import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import { beginningOf, isEngineError, quoteText } from '../../engine/index.ts';
import type { TenantCall } from '../route.ts';
import { protocolError } from './failures.ts';
import { describeProfile } from './profile.ts';
import { describeEntity } from './tools/entities.ts';
import { describeMemory } from './tools/memories.ts';

/** Greatest length of a document's text that is returned, in UTF-16 code units; the rest is cut, and a note says so. */
const DOCUMENT_CHARACTERS = 200_000;

interface Template {
  readonly name: string;
  readonly variable: 'id' | 'name';
  readonly title: string;
  readonly description: string;
  readonly mimeType: string;
  readonly read: (call: TenantCall, value: string) => Promise<string>;
}

const TEMPLATES: readonly Template[] = [
  {
    name: 'memory',
    variable: 'id',
    title: 'A memory',
    description: 'One memory with its links and its history.',
    mimeType: 'text/plain',
    read: ({ tenant }, id) => describeMemory(tenant, id, ['links', 'history']),
  },
  {
    name: 'document',
    variable: 'id',
    title: 'A document',
    description: 'The text of a document as Markdown.',
    mimeType: 'text/markdown',
    read: readDocument,
  },
  {
    name: 'entity',
    variable: 'name',
    title: 'A name',
    description: 'What memories say about a name.',
    mimeType: 'text/plain',
    read: async ({ tenant }, name) => describeEntity(await tenant.getEntity(name, undefined)),
  },
];

/**
 * Runs `work` for a caller: takes one token of `queries`, records a read in the audit log under `name` with
 * `OM_AUDIT=all`, and waits for a turn among the messages of the request. It rejects as `work` does, with
 * `rate_limited`, and with what `inTurn` throws.
 */
export type Run = (name: string, work: () => Promise<string>) => Promise<string>;

/**
 * Registers the MCP resources, for a caller who may read: memories, documents, entities (names that memories mention),
 * and the profile.
 */
export function registerResources(server: McpServer, call: TenantCall, run: Run): void {
  for (const { name, variable, read, ...shown } of TEMPLATES) {
    const template = new ResourceTemplate(`cairn://${name}/{${variable}}`, { list: undefined });
    server.registerResource(name, template, shown, (uri, variables) =>
      answer(call, { uri: uri.href, mimeType: shown.mimeType }, () =>
        run(`resource.${name}`, () => read(call, decoded(variables[variable]))),
      ),
    );
  }
  const profile = { title: 'Profile', description: 'What is lasting about the user.', mimeType: 'text/plain' };
  server.registerResource('profile', 'cairn://profile', profile, (uri) =>
    answer(call, { uri: uri.href, mimeType: profile.mimeType }, () =>
      run('resource.profile', () => describeProfile(call)),
    ),
  );
}

async function answer(
  call: TenantCall,
  { uri, mimeType }: { readonly uri: string; readonly mimeType: string },
  read: () => Promise<string>,
) {
  try {
    return { contents: [{ uri, mimeType, text: await read() }] };
  } catch (error) {
    if (isEngineError(error, 'not_found')) throw new ResourceNotFoundError(uri);
    throw protocolError(error, call);
  }
}

/**
 * Decodes a percent-encoded segment of a URI. A malformed segment is returned unchanged; nothing has such a name, so it
 * is not found later.
 */
function decoded(part: string | string[] | undefined): string {
  const text = Array.isArray(part) ? part.join(',') : (part ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function readDocument({ tenant }: TenantCall, id: string): Promise<string> {
  const document = await tenant.getDocument(id);
  let text = '';
  for await (const piece of await tenant.documentContent(id)) {
    text += piece;
    if (text.length > DOCUMENT_CHARACTERS) break;
  }
  const isCut = document.characters > DOCUMENT_CHARACTERS;
  const note = isCut ? [`These are the first ${DOCUMENT_CHARACTERS} of ${document.characters} characters.`, ''] : [];
  return [...note, quoteText(beginningOf(text, DOCUMENT_CHARACTERS))].join('\n');
}
