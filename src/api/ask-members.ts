/** Asks the members of a federated question: tenants of this server, and other servers. */
import { createFederationClient, type FederationClient } from '../engine/adapters/index.ts';
import {
  EngineError,
  type FederationAccess,
  fuseMembers,
  isBound,
  isEngineError,
  type MemberOutcome,
  serialiseError,
} from '../engine/index.ts';
import { openAnswerRoom } from './answer-room.ts';
import { isWithinRate } from './rate-limits.ts';
import { parseJson } from './read-body.ts';
import type { TenantCall } from './route.ts';
import { isPublicRead } from './routes/public-reads.ts';
import {
  type FederatedAnswerItem,
  type FederatedQueryBody,
  foreignAnswer,
  foreignMatches,
  type MemberMatch,
  memberMatchOf,
  type OriginItem,
} from './schemas/federation.ts';
import { LIMITS } from './schemas/limits.ts';
import { tenantOf } from './tenant-of.ts';
import { nextTurn } from './turns.ts';
import { clientGone } from './wait-for-writes.ts';
import { DEFAULT_K, matchItem, toQuery } from './wire/query.ts';

/** Whom a question asks. */
export interface Members {
  /** Tenants of this server. */
  readonly tenantIds: readonly string[];
  readonly servers: readonly FederationAccess[];
}

/** What came of one member. */
interface Answer {
  readonly outcome: MemberOutcome;
  /** Why there is no answer; null for an answer. */
  readonly detail: string | null;
  /** Best first. */
  readonly matches: readonly MemberMatch[];
  readonly degraded: boolean;
  readonly recallId: string | null;
}

/** The question as every member gets it. */
type Question = Omit<FederatedQueryBody, 'tenants' | 'servers'> & { readonly k: number; readonly reinforce: false };

/** Most bytes of all matches as JSON: as much as the texts of one tenant's answer have. */
const MAX_MATCHES_BYTES = 6 * 1024 * 1024;
/** Most bytes that are read of a server's answer: the most that a query of Cairn answers, and what is around them. */
const MAX_ANSWER_BYTES = 9 * 1024 * 1024;

/** Most bytes that are read of a server's answer with `k` matches: one of them may have the longest value, too. */
const answerBytes = (k: number) =>
  Math.min(2 * LIMITS.valueBytes + k * (LIMITS.contentBytes + LIMITS.metadataBytes), MAX_ANSWER_BYTES);

/**
 * Asks all members at once and merges their answers by score. A member that fails costs only its own answer. Nothing
 * that is found is reinforced, as a member does not know which of its matches are among the best of all.
 * @returns the answer, and the bytes of its matches as JSON
 * @throws EngineError `invalid` for a question that a tenant refuses; whatever `call.api.stop` was aborted with
 */
export async function askMembers(
  call: TenantCall,
  { tenants: _tenants, servers: _servers, ...body }: FederatedQueryBody,
  { tenantIds, servers }: Members,
): Promise<{ readonly answer: FederatedAnswerItem; readonly bytes: number }> {
  const question = { ...body, k: body.k ?? DEFAULT_K, reinforce: false } as const;
  const signal = AbortSignal.any([clientGone(call.response), call.api.stop]);
  const room = openAnswerRoom(`${call.principal.tenantId} ${call.principal.keyId}`);
  const limits = { maxBytes: answerBytes(question.k), room, signal };
  const asked = await Promise.all([
    ...tenantIds.map((tenantId) =>
      timed({ tenant: tenantId, server: null }, () => askTenant(call, question, { tenantId, signal })),
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
  const { count, bytes } = fittingOf(best);
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

/** Counts the first matches that have at most `MAX_MATCHES_BYTES` of JSON together, and these bytes. */
function fittingOf(matches: readonly MemberMatch[]): { readonly count: number; readonly bytes: number } {
  let bytes = 0;
  for (const [count, match] of matches.entries()) {
    const more = Buffer.byteLength(JSON.stringify(match));
    if (bytes + more > MAX_MATCHES_BYTES) return { count, bytes };
    bytes += more;
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
  { tenantId, signal }: { readonly tenantId: string; readonly signal: AbortSignal },
): Promise<Answer> {
  const { api, principal } = call;
  const { config, logger } = api.engine;
  // The request itself has paid for its own tenant.
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
    return { outcome: 'answered', detail: null, matches, degraded, recallId };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return without('timeout', `no answer within ${config.OM_FEDERATION_TIMEOUT_MS / 1000} s`);
    // What is wrong with the question is wrong for all.
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
  // Many servers may answer at once: each of them holds the event loop for itself.
  await nextTurn();
  const body = parsedOrUndefined(reply.bytes);
  if (body === undefined)
    return without('invalid', 'what the server answered is no JSON, or has more values, names or depth than is read');
  const answer = foreignAnswer.safeParse(body);
  // What goes beyond the question is not looked at, or a long list of nothing would take all time.
  const matches = foreignMatches.safeParse(answer.data?.matches.slice(0, question.k));
  if (!answer.success || !matches.success)
    return without('invalid', 'the server did not answer as a Cairn server does');
  const { degraded, recall_id: recallId } = answer.data;
  return { outcome: 'answered', detail: null, matches: matches.data, degraded, recallId };
}

/** Parses JSON within the bounds of a request's body. @returns undefined for any other bytes */
function parsedOrUndefined(bytes: Buffer): unknown {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (isEngineError(error) && error.code === 'invalid') return undefined;
    throw error;
  }
}

/**
 * Finds whom a question asks.
 * @throws EngineError `forbidden` for tenants that the key does not reach, and for servers where the caller may not
 *   have questions sent; `not_found` for a server that is not registered
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
 * Throws EngineError `forbidden` unless the caller may have questions sent to other servers. The key of a server
 * reaches all that it was given there, so a caller that reaches only a part here does not use it.
 */
function requireServersAllowed(principal: TenantCall['principal']): void {
  if (isBound(principal))
    throw new EngineError('forbidden', 'servers: this key is bound to a user or tags, which other servers do not know');
  if (isPublicRead(principal)) throw new EngineError('forbidden', 'servers: a caller without a key may not ask them');
}
