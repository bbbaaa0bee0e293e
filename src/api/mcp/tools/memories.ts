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

/** Most tokens of a list; one memory is shown whatever its length. */
const LIST_TOKENS = 6_000;
const DEFAULT_LIMIT = 20;
/** Longest excerpt of a replaced value, in characters. */
const REPLACED_CHARACTERS = 2_000;
/** Longest tag, type or the like that is shown, in characters. */
const LABEL_CHARACTERS = 128;
/** Most links and most revisions that are shown with a memory. */
const MAX_SHOWN = 50;

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
    limit: integer(1, 100).optional().describe('20 by default.'),
    cursor: text(MAX_CURSOR_CHARACTERS).optional().describe('Cursor of the page before.'),
    session_id: givenId.optional(),
  }),
  async run(call, { since, limit = DEFAULT_LIMIT, cursor, session_id: session }) {
    const { memories, next } = await recentMemories(call, { since, limit, cursor, session });
    return [
      memories.length === 0 ? 'No memories.' : quoteMemories(memories).text,
      ...(next === null ? [] : ['', `There are more: ask again with cursor ${next}`]),
    ].join('\n');
  },
});

/** The second half of the contract of ChatGPT's connectors: one text of JSON. */
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
 * Describes a memory: its text, quoted, what is known about it, and the details that are asked for.
 * @throws EngineError `not_found`
 */
export async function describeMemory(
  tenant: Tenant,
  id: string,
  include: readonly (typeof DETAILS)[number][] = [],
): Promise<string> {
  const memory = await tenant.getMemory(id);
  const links = include.includes('links') ? await tenant.listLinks(id) : undefined;
  const revisions = include.includes('history') ? await tenant.listRevisions(id, { limit: MAX_SHOWN }) : undefined;
  return [
    quoteMemories([memory]).text,
    '',
    factsOf(memory),
    ...(links === undefined ? [] : ['', 'Links:', ...orNone(links.slice(0, MAX_SHOWN).map(linkLine))]),
    ...(revisions === undefined ? [] : ['', 'History, latest change first:', ...orNone(revisions.map(revisionLine))]),
  ].join('\n');
}

interface RecentPage {
  readonly since?: number | undefined;
  readonly limit: number;
  /** `next` of the page before; what is stored meanwhile shifts nothing. */
  readonly cursor?: string | undefined;
  readonly session?: string | undefined;
}

/**
 * Lists memories in the order in which they were stored, newest first, as far as `LIST_TOKENS` reach.
 * @throws EngineError `invalid` for a cursor of another list
 */
export async function recentMemories(
  { tenant }: TenantCall,
  { since, limit, cursor, session }: RecentPage,
): Promise<{ readonly memories: readonly Memory[]; readonly next: string | null }> {
  const filter = { createdFrom: since, sessionIds: session === undefined ? undefined : [session] };
  const { slices, next } = await tenant.pageMemories(filter, { limit, cursor });
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
