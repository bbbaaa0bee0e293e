/** Sends one query to several members, which are tenants of this server and other servers, and merges their answers. */
import { type AnswerRoom, createFederationClient, type FederationClient } from '../engine/adapters/index.ts';
import {
  DEFAULT_K,
  EngineError,
  type FederationAccess,
  fuseMembers,
  isBound,
  isEngineError,
  type MemberOutcome,
  serialiseError,
  nextTurn,
  takeTurn,
} from '../engine/index.ts';
import { openAnswerRoom } from './answer-room.ts';
import { isWithinRate } from './take-tokens.ts';
import { parseJsonInTurns } from './read-body.ts';
import type { TenantCall } from './route.ts';
import { isPublicRead } from './routes/public-reads.ts';
import {
  type FederatedAnswerItem,
  type FederatedQueryBody,
  foreignAnswer,
  foreignMatch,
  type MemberMatch,
  memberMatchOf,
  type OriginItem,
} from './schemas/federation.ts';
import { LIMITS } from './schemas/value-limits.ts';
import { tenantOf } from './tenant-of.ts';
import { clientGone } from './wait-for-writes.ts';
import { matchItem, toQuery } from './wire/query.ts';

/** The members to which a federated query is sent. */
export interface Members {
  /** Ids of tenants of this server. */
  readonly tenantIds: readonly string[];
  readonly servers: readonly FederationAccess[];
}

/** The answer of one member, or the reason why it gave none. */
interface Answer {
  readonly outcome: MemberOutcome;
  /** Reason why there is no answer, as a sentence; null if there is one. */
  readonly detail: string | null;
  /** The member's matches, best first; empty if it gave no answer. */
  readonly matches: readonly MemberMatch[];
  readonly degraded: boolean;
  readonly recallId: string | null;
}

/**
 * The query in the form in which it is sent to every member (a tenant or another server). It never reinforces memories.
 */
type Question = Omit<FederatedQueryBody, 'tenants' | 'servers'> & { readonly k: number; readonly reinforce: false };

/**
 * Greatest size of all matches of the merged answer, in bytes of JSON; as much as the texts of one tenant's answer may
 * take.
 */
const MAX_MATCHES_BYTES = 6 * 1024 * 1024;
/**
 * Greatest number of bytes that are read of a server's answer: the longest answer that Cairn gives, and 1 MiB for what
 * surrounds its matches.
 */
const MAX_ANSWER_BYTES = 9 * 1024 * 1024;

/**
 * Returns the greatest number of bytes that are read of a server's answer with `k` matches: the greatest length of a
 * memory's content and metadata, `k` times, and twice the greatest length of an item's value for everything else, but
 * at most 9 MiB in all.
 */
const maxAnswerBytes = (k: number) =>
  Math.min(2 * LIMITS.valueBytes + k * (LIMITS.contentBytes + LIMITS.metadataBytes), MAX_ANSWER_BYTES);

/**
 * Sends a query to all members at once and merges their answers by score. If a member fails, only its answer is
 * missing, and `members` says why. Matches beyond 6 MiB of JSON are cut, which `truncated` says. The query reinforces
 * no memory, as a member does not know which of its matches are among the best of all.
 * @returns the answer, and the size of its matches in bytes of JSON
 * @throws EngineError `invalid` for a query that a tenant refuses; the reason of the abort if the client leaves or the
 *   server stops
 */
export async function askMembers(
  call: TenantCall,
  { tenants: _tenants, servers: _servers, ...body }: FederatedQueryBody,
  { tenantIds, servers }: Members,
): Promise<{ readonly answer: FederatedAnswerItem; readonly bytes: number }> {
  const question = { ...body, k: body.k ?? DEFAULT_K, reinforce: false } as const;
  const signal = AbortSignal.any([clientGone(call.response), call.api.stop]);
  const room = openAnswerRoom(call.principal);
  const limits = { maxBytes: maxAnswerBytes(question.k), room, signal };
  const asked = await Promise.all([
    ...tenantIds.map((tenantId) =>
      timed({ tenant: tenantId, server: null }, () => askTenant(call, question, { tenantId, room, signal })),
    ),
    ...servers.map((server) =>
      timed({ tenant: server.remoteTenant, server: server.name }, () => askServer(call, question, { server, limits })),
    ),
  ]).finally(room.leave);
  for (const { origin, answer } of asked)
    call.api.engine.metrics.federationMembers.inc({
      member: origin.server === null ? 'tenant' : 'server',
      outcome: answer.outcome,
    });
  const answers = asked.map(({ origin, answer }) => answer.matches.map((match) => ({ origin, ...match })));
  const best = fuseMembers(answers, question.k);
  const { count, bytes } = await fittingOf(best);
  const matches = best.slice(0, count);
  const answer = {
    query: body.query,
    matches,
    members: asked.map(({ origin, answer, ms }) => ({
      ...origin,
      outcome: answer.outcome,
      detail: answer.detail,
      matches: answer.matches.length,
      degraded: answer.degraded,
      recall_id: answer.recallId,
      ms,
    })),
    degraded: asked.some(({ answer }) => answer.degraded),
    ...(matches.length < best.length ? { truncated: true as const } : {}),
  };
  return { answer, bytes };
}

/**
 * Counts how many matches, from the start of the list, have at most `MAX_MATCHES_BYTES` of JSON together. `bytes` is
 * the size of the JSON of these matches.
 */
async function fittingOf(matches: readonly MemberMatch[]): Promise<{ readonly count: number; readonly bytes: number }> {
  let bytes = 0;
  for (const [count, match] of matches.entries()) {
    const more = Buffer.byteLength(JSON.stringify(match));
    if (bytes + more > MAX_MATCHES_BYTES) return { count, bytes };
    bytes += more;
    await takeTurn();
  }
  return { count: matches.length, bytes };
}

async function timed(origin: OriginItem, ask: () => Promise<Answer>) {
  const startedAt = performance.now();
  const answer = await ask();
  return { origin, answer, ms: Math.round((performance.now() - startedAt) * 10) / 10 };
}

const without = (outcome: MemberOutcome, detail: string): Answer => ({
  ...{ outcome, detail, matches: [], degraded: true, recallId: null },
});

async function askTenant(
  call: TenantCall,
  question: Question,
  { tenantId, room, signal }: { readonly tenantId: string; readonly room: AnswerRoom; readonly signal: AbortSignal },
): Promise<Answer> {
  const { api, principal } = call;
  const { config, logger } = api.engine;
  // The rate limit of the caller's own tenant was charged by the request itself.
  const isPaid = tenantId === principal.tenantId;
  if (!isPaid && !isWithinRate(call, 'queries', tenantId))
    return without('refused', 'the key may not ask this tenant so often (limit: queries)');
  const timeout = AbortSignal.timeout(config.OM_FEDERATION_TIMEOUT_MS);
  try {
    const tenant = await tenantOf(api.engine, { ...principal, tenantId });
    if (config.OM_AUDIT === 'all') await tenant.recordAction('read.queryFederation', { reads: 1 });
    const query = { ...toQuery(question), ...(isPublicRead(principal) ? { isLogged: false } : {}) };
    const { hits, degraded, recallId } = await tenant.query(query, AbortSignal.any([signal, timeout]));
    const matches = hits.map((hit) => memberMatchOf(matchItem(hit)));
    // They are held until the slowest member has answered. A text takes two bytes a character at most.
    for (const match of matches) {
      if (!room.take(2 * JSON.stringify(match).length))
        return without('failed', 'answers to this key take too much memory now; ask fewer members at once');
      await takeTurn();
    }
    return { outcome: 'answered', detail: null, matches, degraded, recallId };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return without('timeout', `no answer within ${config.OM_FEDERATION_TIMEOUT_MS / 1000} s`);
    // A question that one member refuses as invalid is invalid for all.
    if (isEngineError(error) && error.code === 'invalid') throw error;
    logger.warn({ tenantId, error: serialiseError(error) }, 'federation_member_failed');
    return without('failed', 'this tenant cannot be read now');
  }
}

async function askServer(
  { api }: TenantCall,
  question: Question,
  { server, limits }: { readonly server: FederationAccess; readonly limits: Parameters<FederationClient['ask']>[2] },
): Promise<Answer> {
  const reply = await createFederationClient(api.engine.config).ask(server, question, limits);
  if (reply.outcome !== 'answered') return without(reply.outcome, reply.detail);
  // Many servers may answer at once, and checking an answer blocks the event loop: others have a turn in between.
  await nextTurn();
  const body = await parsedOrUndefined(reply.bytes);
  if (body === undefined)
    return without('invalid', 'what the server answered is no JSON, or has more values, names or depth than is read');
  const answer = foreignAnswer.safeParse(body);
  // No more matches than were asked for are checked: checking an endless list would take too long.
  const matches = await checkedMatches(answer.data?.matches.slice(0, question.k) ?? []);
  if (!answer.success || matches === undefined)
    return without('invalid', 'the server did not answer as a Cairn server does');
  const { degraded, recall_id: recallId } = answer.data;
  return { outcome: 'answered', detail: null, matches, degraded, recallId };
}

/**
 * Checks that all matches of another server's answer have the right form, and lets other requests run in between.
 * @returns the checked matches; undefined if one of them has a wrong form
 */
async function checkedMatches(found: readonly unknown[]): Promise<MemberMatch[] | undefined> {
  const matches: MemberMatch[] = [];
  for (const match of found) {
    const checked = foreignMatch.safeParse(match);
    if (!checked.success) return undefined;
    matches.push(checked.data);
    await takeTurn();
  }
  return matches;
}

/**
 * Parses JSON with the limits that a request body has, and lets other requests run in between. Returns undefined if the
 * bytes are not JSON or exceed the limits; other errors are thrown.
 */
async function parsedOrUndefined(bytes: Buffer): Promise<unknown> {
  try {
    return await parseJsonInTurns(bytes);
  } catch (error) {
    if (isEngineError(error) && error.code === 'invalid') return undefined;
    throw error;
  }
}

/**
 * Finds the tenants and servers that a query names. If it has no field `tenants`, all tenants of the key are members.
 * @throws EngineError `forbidden` for a tenant to which the key has no access, and for servers if the caller may not
 *   use them; `not_found` for a server that is not registered; `invalid` if there is no member at all
 */
export function membersOf(
  { api, principal }: TenantCall,
  { tenants, servers = [] }: Pick<FederatedQueryBody, 'tenants' | 'servers'>,
): Members {
  const tenantIds = [...new Set(tenants ?? principal.tenantIds)];
  if (tenantIds.some((tenantId) => !principal.tenantIds.includes(tenantId)))
    throw new EngineError('forbidden', 'tenants: your key has no access to one of these tenants');
  const names = [...new Set(servers)];
  if (names.length > 0) requireServersAllowed(principal);
  const found = names.map((name) => {
    const server = api.engine.control.federation.find(principal.tenantId, name);
    if (server === undefined) throw new EngineError('not_found', `servers: no server ${name} is registered`);
    return server;
  });
  if (tenantIds.length + found.length === 0) throw new EngineError('invalid', 'name a tenant or a server to be asked');
  return { tenantIds, servers: found };
}

/**
 * Throws EngineError `forbidden` if the caller may not have queries sent to other servers: its key is bound to a user
 * or tags, or it has no key. A registered server's key may read everything that it was granted there, which is more
 * than such a caller may read here.
 */
function requireServersAllowed(principal: TenantCall['principal']): void {
  if (isBound(principal))
    throw new EngineError('forbidden', 'servers: this key is bound to a user or tags, which other servers do not know');
  if (isPublicRead(principal)) throw new EngineError('forbidden', 'servers: a caller without a key may not ask them');
}
