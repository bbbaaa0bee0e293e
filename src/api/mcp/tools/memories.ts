import { z } from 'zod';
import {
  type Link,
  type ListedMemory,
  MAX_CURSOR_CHARACTERS,
  type Memory,
  quoteLine,
  quoteMemories,
  type Revision,
  type Tenant,
} from '../../../engine/index.ts';
import type { TenantCall } from '../../route.ts';
import { choice, givenId, integer, text } from '../../schemas/values.ts';
import { isoTime, READS, tool } from '../tool.ts';

/** Greatest number of tokens of a list; its first memory is always included. */
const LIST_TOKENS = 6_000;
const DEFAULT_LIMIT = 20;
/** Greatest length of a replaced value that is quoted, in UTF-16 code units; the rest is cut. */
const REPLACED_CHARACTERS = 2_000;
/** Greatest length of a tag, type or similar text that is quoted, in UTF-16 code units. */
const LABEL_CHARACTERS = 128;
/** Greatest number of links, and of revisions, that are listed with a memory. */
const MAX_SHOWN = 50;
/**
 * Greatest length of the list of a memory's changes, in UTF-16 code units; older changes are left out, except that the
 * latest one is always listed. If the replaced values that were read exceed `READ_CHARACTERS`, no further changes are
 * read.
 */
const HISTORY_CHARACTERS = 50_000;
const READ_CHARACTERS = 1024 * 1024;

const DETAILS = ['links', 'history'] as const;

export const getMemory = tool({
  name: 'get_memory',
  title: 'Get a memory',
  description: 'Show one memory in full by its id, with its links or its history if asked for.',
  needs: 'read',
  annotations: READS,
  input: z.strictObject({
    id: givenId.describe('Memory id.'),
    include: z.array(choice(DETAILS)).max(DETAILS.length).optional(),
  }),
  run: async ({ tenant }, { id, include = [] }) => describeMemory(tenant, id, include),
});

export const listRecent = tool({
  name: 'list_recent',
  title: 'List recent memories',
  description: 'List memories by when they were stored, newest first.',
  needs: 'read',
  annotations: READS,
  input: z.strictObject({
    since: isoTime.optional().describe('Only what was stored from this ISO 8601 time on.'),
    limit: integer(1, 100).optional().describe('Greatest number of memories; 20 by default.'),
    cursor: text(MAX_CURSOR_CHARACTERS).optional().describe('Cursor that the page before named.'),
    session_id: givenId.optional(),
  }),
  async run(call, { since, limit = DEFAULT_LIMIT, cursor, session_id: session }, { signal }) {
    const { memories, next } = await recentMemories(call, { since, limit, cursor, session }, signal);
    return [
      memories.length === 0 ? noMemories({ since, cursor, session }) : quoteMemories(memories).text,
      ...(next === null ? [] : ['', `There are more: ask again with cursor ${next}`]),
    ].join('\n');
  },
});

/** Returns a sentence that says that no memory was found, and with which conditions it was searched. */
function noMemories({ since, cursor, session }: Omit<RecentPage, 'limit'>): string {
  const asked = [
    ...(session === undefined ? [] : [` in session ${quoteLine(session, LABEL_CHARACTERS)}`]),
    ...(since === undefined ? [] : [` stored since ${isoOf(since)}`]),
    ...(cursor === undefined ? [] : [' behind this cursor']),
  ];
  return `No memories${asked.join('')}.`;
}

/** The tool `fetch`, the second of the two tools that ChatGPT's connectors ask for. Its result is one text of JSON. */
export const fetchMemory = tool({
  name: 'fetch',
  title: 'Fetch',
  description: 'Return the text of a memory that search found.',
  needs: 'read',
  extra: 'search_fetch',
  annotations: READS,
  input: z.strictObject({ id: givenId.describe('Memory id.') }),
  async run({ tenant }, { id }) {
    const memory = await tenant.getMemory(id);
    return JSON.stringify({
      id,
      title: quoteLine(memory.title, LABEL_CHARACTERS),
      text: quoteMemories([memory]).text,
      url: `cairn://memory/${id}`,
      metadata: { event_time: isoOf(memory.eventTime), status: memory.status },
    });
  },
});

/**
 * Describes a memory in text: its quoted content, its properties, and the details named in `include`, at most 50 of
 * each.
 * @throws EngineError `not_found` if there is no such memory
 */
export async function describeMemory(
  tenant: Tenant,
  id: string,
  include: readonly (typeof DETAILS)[number][] = [],
): Promise<string> {
  const memory = await tenant.getMemory(id);
  const links = include.includes('links') ? await tenant.listLinks(id) : undefined;
  const history = include.includes('history') ? await historyOf(tenant, id) : undefined;
  return [
    quoteMemories([memory]).text,
    '',
    factsOf(memory),
    ...(links === undefined ? [] : ['', 'Links:', ...orNone(links.slice(0, MAX_SHOWN).map(linkLine))]),
    ...(history === undefined ? [] : ['', 'History, latest change first:', ...orNone(history)]),
  ].join('\n');
}

/**
 * Describes the latest changes of a memory, the latest first, one line for each. They are read in slices until 50 are
 * listed or they are too long (`HISTORY_CHARACTERS`), as all of them together may be too large for memory.
 */
async function historyOf(tenant: Tenant, id: string): Promise<string[]> {
  const lines: string[] = [];
  let [shown, read] = [0, 0];
  for await (const slice of tenant.streamRevisions(id, { limit: MAX_SHOWN })) {
    for (const revision of slice) {
      const line = revisionLine(revision);
      if (lines.length > 0 && shown + line.length > HISTORY_CHARACTERS) return [...lines, OLDER];
      lines.push(line);
      shown += line.length;
      for (const value of Object.values(revision.replaced)) read += typeof value === 'string' ? value.length : 0;
    }
    if (read > READ_CHARACTERS && lines.length < MAX_SHOWN) return [...lines, OLDER];
  }
  return lines;
}

const OLDER = '- older changes, if there are any, are too long to be shown here';

interface RecentPage {
  readonly since?: number | undefined;
  readonly limit: number;
  /** Cursor at which the page begins: `next` of the page before. Memories that are stored meanwhile do not shift it. */
  readonly cursor?: string | undefined;
  readonly session?: string | undefined;
}

/**
 * Returns memories in the order in which they were stored, newest first: at most `limit`, and as many as fit into 6,000
 * tokens, but at least one. `next` is the cursor of the next page; null on the last one.
 * @throws EngineError `invalid` for a cursor of another list
 */
export async function recentMemories(
  { tenant }: TenantCall,
  { since, limit, cursor, session }: RecentPage,
  signal: AbortSignal,
): Promise<{ readonly memories: readonly Memory[]; readonly next: string | null }> {
  const filter = { createdFrom: since, sessionIds: session === undefined ? undefined : [session] };
  const { slices, next } = await tenant.pageMemories(filter, { limit, cursor }, signal);
  const listed: ListedMemory[] = [];
  const fitting = () =>
    quoteMemories(
      listed.map(({ memory }) => memory),
      LIST_TOKENS,
    ).shown;
  for await (const slice of slices) {
    listed.push(...slice);
    if (fitting() < listed.length) break;
  }
  const shown = listed.slice(0, fitting());
  const isCut = shown.length < listed.length;
  return { memories: shown.map(({ memory }) => memory), next: isCut ? (shown.at(-1)?.cursor ?? null) : next };
}

function factsOf(memory: Memory): string {
  const { type, tags, expiresAt } = memory;
  return [
    `Status ${memory.status}, ${memory.state}, version ${memory.version}`,
    `stored ${isoOf(memory.createdAt)}`,
    `happened ${isoOf(memory.eventTime)}`,
    ...(expiresAt === null ? [] : [`expires ${isoOf(expiresAt)}`]),
    `sectors ${memory.sectors.join(', ')}`,
    ...(type === null ? [] : [`type ${quoteLine(type, LABEL_CHARACTERS)}`]),
    ...(tags.length === 0 ? [] : [`tags ${tags.map((tag) => quoteLine(tag, LABEL_CHARACTERS)).join(', ')}`]),
  ].join('; ');
}

function linkLine({ id, type, direction, weight }: Link): string {
  return `- ${direction === 'out' ? `${type} →` : `← ${type} of`} memory ${id} (weight ${weight.toFixed(2)})`;
}

function revisionLine({ version, replacedAt, replaced }: Revision): string {
  const values = Object.entries(replaced).map(([field, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value);
    return `${field} was ${quoteLine(shown, REPLACED_CHARACTERS)}`;
  });
  return `- version ${version}, replaced ${isoOf(replacedAt)}: ${values.join('; ')}`;
}

const orNone = (lines: readonly string[]) => (lines.length === 0 ? ['none'] : lines);

function isoOf(time: number): string {
  return new Date(time).toISOString();
}
