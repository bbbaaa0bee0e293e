import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { createTokenVerifier, isToken } from '../engine/adapters/index.ts';
import {
  DEFAULT_TENANT,
  type Engine,
  EngineError,
  type Holder,
  isStillAdmitted,
  judgeMetricsReader,
  nextTurn,
  readCredential,
  type Role,
} from '../engine/index.ts';
import { readSession } from './console/session-cookie.ts';
import { clientAddresses } from '../client-address.ts';
import type { Access } from './route.ts';
import { holderOfToken } from './token-holder.ts';
import { withoutStack } from './without-stack.ts';

type Guarded = Exclude<Access, 'anyone'>;
type GuardedByRole = Exclude<Guarded, 'metrics'>;

/**
 * For each role, the `access` of the routes that its holder may call. The role `add` is not a weaker `write`: its
 * holder can read nothing but the jobs and the batch receipts of what it wrote itself.
 */
const MAY: Readonly<Record<Role, ReadonlySet<GuardedByRole>>> = {
  read: new Set(['read', 'read or add']),
  add: new Set(['add', 'read or add']),
  write: new Set(['read', 'add', 'read or add', 'write']),
  admin: new Set(['read', 'add', 'read or add', 'write', 'admin']),
};
/** Tells whether a holder of `role` may call a route that requires the role `needed`. */
export function mayDo(role: Role, needed: Role): boolean {
  return MAY[role].has(needed);
}

/**
 * Tells whether a route with this access only reads, so that the role `read` suffices. `OM_PUBLIC_READS` opens such
 * routes in the default tenant to callers without a key, and `OM_AUDIT=all` records their calls in the audit log.
 */
export function isReading(access: Access): boolean {
  return access === 'read' || access === 'read or add';
}

const ANYONE: Holder = {
  tenantId: DEFAULT_TENANT,
  tenantIds: [DEFAULT_TENANT],
  role: 'admin',
  keyId: 'anonymous',
  expiresAt: null,
};
const PUBLIC_READER: Holder = { ...ANYONE, role: 'read' };
const METRICS_READER: Holder = { ...ANYONE, role: 'read', keyId: 'metrics' };
/** Header by which a request chooses one of the tenants that its key may use. */
const TENANT_HEADER = 'x-cairn-tenant';

/**
 * Greatest number of sign-ins by OIDC tokens that are remembered, each for an hour: the oldest unused one beyond it is
 * forgotten. The audit log gets one record for a sign-in that is remembered (an owner with the same role and tenants),
 * and not one for each request.
 */
const MAX_SIGNED_IN = 10_000;

/** Secret of the browser session by which each holder came; a holder that came by a key or token has no entry. */
const sessions = new WeakMap<Holder, string>();

/**
 * Returns the secret of the session by which an admitted holder came; undefined if it came by none, and for a holder
 * that was admitted to `metrics`.
 */
export function sessionOf(holder: Holder): string | undefined {
  return sessions.get(holder);
}

/** Authenticates callers and decides which routes they may call. */
export interface AccessControl {
  /**
   * Identifies the caller by the key or token in the request's headers, chooses the tenant, and checks the role. While
   * no key is configured, every caller is admin of the default tenant, since `refuseStrangersWhileOpen` has already
   * refused other machines. With `OM_PUBLIC_READS` a caller without a key may read the default tenant. A wrong key is a
   * 401 like a missing key, so that a guesser learns nothing; a key whose role does not suffice is a 403. A token whose
   * signature does not fit the keys of the issuer (`OM_OIDC_ISSUER`) counts as a wrong key; one that has expired, or
   * names a key that the issuer does not have, is refused without being counted. A request without a key may carry the
   * cookie of a browser session instead (`readSession`). A token may wait until its sign-in is in the audit log.
   * @param readKey returns the key, or undefined if there is none; by default it is read from the headers that every
   *   route accepts. It is called only if keys are configured.
   * @returns the holder: the identified caller, with its tenants, its role and the id of its key. All callers that are
   *   admitted to `metrics` while keys are configured have the same holder, with the id `metrics`
   * @throws EngineError `unauthenticated`, `forbidden`; `rate_limited` after too many wrong keys from one address;
   *   `unavailable` for a token if the issuer's signing keys were never fetched; for a token also what the record of
   *   its sign-in throws
   */
  admit(request: IncomingMessage, access: Guarded, readKey?: () => string | undefined): Promise<Holder>;
  /**
   * Tells whether the caller would still be admitted now. It is false once its key or token was revoked or has expired,
   * or the session by which it came has ended; for a caller without a key, once a key is configured, unless
   * `OM_PUBLIC_READS` lets it read.
   */
  isStillAdmitted(holder: Holder): boolean;
  /**
   * Returns what stands for the caller in comparisons: the secret of the session by which the holder came, else the
   * holder itself. So all requests of one session have the same value.
   */
  callerOf(holder: Holder): unknown;
}

/**
 * Returns a function that records a token's sign-in in the audit log, at most once an hour for each owner, role and
 * list of tenants while it is remembered (`MAX_SIGNED_IN`); never with `OM_AUDIT=off`. Requests that come meanwhile
 * wait for the record. If it fails, they fail as well, and the next request records the sign-in.
 */
function createSignInNotes(engine: Engine): (holder: Holder) => Promise<void> {
  const signedIn = new LRUCache<string, Promise<void>>({ max: MAX_SIGNED_IN, ttl: 3_600_000 });
  return (holder) => {
    if (engine.config.OM_AUDIT === 'off') return Promise.resolve();
    const { keyId, tenantIds, role } = holder;
    const signIn = JSON.stringify([keyId, role, tenantIds]);
    const known = signedIn.get(signIn);
    if (known !== undefined) return known;
    const detail = { tenants: tenantIds, role };
    // The record is of the service: other tokens of the owner wait for it, too, and may outlive this one.
    const noted = nextTurn().then(() => engine.changeControl(null, 'appendAudit', 'token.sign_in', detail, keyId));
    signedIn.set(signIn, noted);
    noted.catch(() => {
      if (signedIn.peek(signIn) === noted) signedIn.delete(signIn);
    });
    return noted;
  };
}

export function createAccessControl(engine: Engine): AccessControl {
  const { control, config, guesses, metrics, logger } = engine;
  const addressOf = clientAddresses(config.trustedProxies);
  const noteSignIn = createSignInNotes(engine);
  const tokens = config.OM_OIDC_ISSUER === undefined ? undefined : createTokenVerifier(engine);

  async function holderBySignature(secret: string): Promise<Holder | undefined> {
    if (tokens === undefined || !isToken(secret)) return undefined;
    const token = await (await tokens).verify(secret);
    if (token === undefined) return undefined;
    const holder = holderOfToken(token, engine);
    await noteSignIn(holder);
    return holder;
  }

  async function identify(secret: string, address: string): Promise<Holder> {
    const holder = control.authenticate(secret) ?? (await holderBySignature(secret));
    const isGuessable = holder?.keyId === 'environment';
    if (holder !== undefined && (!isGuessable || guesses.admitsRightKey(address, 'OM_API_KEY'))) return holder;
    const pauseMs = guesses.pauseMs(address);
    if (pauseMs > 0) {
      metrics.refusedKeys.inc({ reason: 'paused' });
      throw withoutStack('rate_limited', 'too many wrong keys came from your address', { retryAfterMs: pauseMs });
    }
    metrics.refusedKeys.inc({ reason: 'wrong' });
    if (guesses.noteWrong(address)) logger.info({ address }, 'wrong_keys_slowed_down');
    throw withoutStack('unauthenticated', 'this key is not known, has expired or was revoked');
  }

  /**
   * Admits a caller that reads metrics (`GET /metrics`), as `judgeMetricsReader` decides. An unknown key, and a key
   * that an operator made up and a caller may therefore be guessing, are handled as wrong keys; a known key or token
   * that may not read metrics is refused with `forbidden`.
   */
  async function admitToMetrics(secret: string, request: IncomingMessage): Promise<Holder> {
    const address = addressOf(request);
    const verdict = judgeMetricsReader({ secret, address }, engine);
    if (verdict === 'unknown') await identify(secret, address);
    if (verdict === 'admitted') return METRICS_READER;
    throw metricsRefusal();
  }

  return {
    async admit(request, access, readKey = () => readCredential(request)) {
      if (control.isOpen()) return inTenant(ANYONE, request);
      const secret = readKey();
      const visitor = secret === undefined ? admitSession(request, access, control) : undefined;
      if (visitor !== undefined) return visitor;
      if (secret === undefined) {
        if (config.OM_PUBLIC_READS && isReading(access)) return inTenant(PUBLIC_READER, request);
        throw withoutStack('unauthenticated', 'send a key as `Authorization: Bearer <key>` or `x-api-key: <key>`');
      }
      if (access === 'metrics') return admitToMetrics(secret, request);
      return withRole(inTenant(await identify(secret, addressOf(request)), request), access);
    },
    callerOf: (holder) => sessionOf(holder) ?? holder,
    isStillAdmitted: (holder) => isStillAdmitted({ holder, session: sessionOf(holder) }, engine),
  };
}

/**
 * Identifies the caller by the browser session whose cookie the request carries, chooses the tenant, and checks the
 * role.
 * @returns the holder (the caller with its tenant and role); undefined if the request carries no session, or one that
 *   has ended
 * @throws EngineError `forbidden` if the session's role does not suffice, or it has no access to the chosen tenant
 */
function admitSession(request: IncomingMessage, access: Guarded, control: Engine['control']): Holder | undefined {
  const session = readSession(request);
  const holder = session === undefined ? undefined : control.sessions.find(session);
  if (session === undefined || holder === undefined) return undefined;
  if (access !== 'metrics') {
    const admitted = withRole(inTenant(holder, request), access);
    sessions.set(admitted, session);
    return admitted;
  }
  if (holder.role === 'admin' && holder.tenantId === DEFAULT_TENANT) return METRICS_READER;
  throw metricsRefusal();
}

function metricsRefusal(): EngineError {
  return new EngineError(
    'forbidden',
    'the metrics are those of all tenants: this needs an admin key of the default tenant, or OM_METRICS_KEY',
  );
}

/**
 * Returns the holder (the identified caller) unchanged, if its role allows this access.
 * @throws EngineError `forbidden` if the role does not allow it
 */
function withRole(holder: Holder, access: GuardedByRole): Holder {
  if (MAY[holder.role].has(access)) return holder;
  throw new EngineError('forbidden', `this needs a key with the role ${access}; yours has ${holder.role}`);
}

/**
 * Returns the holder (the identified caller) with the tenant that the request names in the header `x-cairn-tenant`;
 * without this header, with its first tenant. The error message does not reveal whether a tenant of that name exists.
 * @throws EngineError `forbidden` if the key has no access to the tenant, the header is given twice, or it is missing
 *   and the first tenant of the key is gone
 */
function inTenant(holder: Holder, request: IncomingMessage): Holder {
  const named = request.headersDistinct[TENANT_HEADER];
  if (named === undefined && holder.mustNameTenant)
    throw new EngineError('forbidden', `${TENANT_HEADER}: the first tenant of your key is gone, so name another one`);
  if (named === undefined || (named.length === 1 && named[0] === holder.tenantId)) return holder;
  const [tenantId = ''] = named;
  if (named.length > 1 || !holder.tenantIds.includes(tenantId))
    throw new EngineError('forbidden', `${TENANT_HEADER}: your key has no access to this tenant`);
  return { ...holder, tenantId };
}
