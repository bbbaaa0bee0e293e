import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { createTokenVerifier, isToken } from '../engine/adapters/index.ts';
import {
  DEFAULT_TENANT,
  type Engine,
  EngineError,
  type Holder,
  judgeMetricsReader,
  readCredential,
  type Role,
} from '../engine/index.ts';
import { readSession } from './console/session-cookie.ts';
import { clientAddresses } from './middleware/client-address.ts';
import type { Access } from './route.ts';
import { holderOfToken } from './token-holder.ts';

type Guarded = Exclude<Access, 'anyone'>;
type GuardedByRole = Exclude<Guarded, 'metrics'>;

/** What the holder of each role may call. `add` is no smaller `write`: it reads nothing but its own jobs. */
const MAY: Readonly<Record<Role, ReadonlySet<GuardedByRole>>> = {
  read: new Set(['read', 'read or add']),
  add: new Set(['add', 'read or add']),
  write: new Set(['read', 'add', 'read or add', 'write']),
  admin: new Set(['read', 'add', 'read or add', 'write', 'admin']),
};
/** Whether the holder of the one role may do what needs the other. */
export function mayDo(role: Role, needed: Role): boolean {
  return MAY[role].has(needed);
}

/**
 * Whether a role that only reads may call a route with this access. Such routes of the default tenant are open without
 * a key where `OM_PUBLIC_READS` is on, and `OM_AUDIT=all` records their calls.
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
/** Header by which a request chooses one of its key's tenants. */
const TENANT_HEADER = 'x-cairn-tenant';

/** Most owners of tokens that are remembered, so that the audit log does not get a record with each request. */
const MAX_SIGNED_IN = 10_000;

/** Decides who may call which route. */
export interface Doorkeeper {
  /**
   * Identifies the caller by the key or token in the request's headers, chooses the tenant, and checks the role.
   * Without any configured key every caller is admin of the default tenant, as `refuseStrangersWhileOpen` lets only
   * this machine through. With `OM_PUBLIC_READS` a caller without a key may read the default tenant. A wrong key is a
   * 401 like a missing one, so that a guesser learns nothing; a key whose role is too small is a 403. A token that
   * `OM_OIDC_ISSUER` did not sign counts as a wrong key; one that it signed and that has expired does not. A request
   * without a key may carry the cookie of a session instead (`readSession`).
   * @param readKey reads the key; by default from the headers that every route accepts. Called only if keys are
   *   configured; undefined from it means that there is none.
   * @throws EngineError `unauthenticated`, `forbidden`; `rate_limited` after too many wrong keys of one address;
   *   `unavailable` for a token while the issuer's keys were never read
   */
  admit(request: IncomingMessage, access: Guarded, readKey?: () => string | undefined): Promise<Holder>;
  /** True if a caller that was admitted would be admitted again: its key or token was neither revoked nor expired. */
  isStillAdmitted(holder: Holder): boolean;
}

export function createDoorkeeper(engine: Engine): Doorkeeper {
  const { control, config, guesses, metrics, logger } = engine;
  const addressOf = clientAddresses(config.trustedProxies);
  const signedIn = new LRUCache<string, true>({ max: MAX_SIGNED_IN, ttl: 3_600_000 });
  const tokens = config.OM_OIDC_ISSUER === undefined ? undefined : createTokenVerifier(engine);

  /** Records a token's owner in the audit log, once an hour. */
  function noteSignIn({ keyId, tenantIds, role }: Holder): void {
    if (signedIn.has(keyId)) return;
    signedIn.set(keyId, true);
    control.audit.append('token.sign_in', { tenants: tenantIds, role }, keyId);
  }

  async function holderBySignature(secret: string): Promise<Holder | undefined> {
    if (tokens === undefined || !isToken(secret)) return undefined;
    const token = await (await tokens).verify(secret);
    if (token === undefined) return undefined;
    const holder = holderOfToken(token, engine);
    noteSignIn(holder);
    return holder;
  }

  async function identify(secret: string, address: string): Promise<Holder> {
    const holder = control.authenticate(secret) ?? (await holderBySignature(secret));
    const isGuessable = holder?.keyId === 'environment';
    if (holder !== undefined && (!isGuessable || guesses.admitsRightKey(address))) return holder;
    const pauseMs = guesses.pauseMs(address);
    if (pauseMs > 0) {
      metrics.refusedKeys.inc({ reason: 'paused' });
      throw new EngineError('rate_limited', 'too many wrong keys came from your address', { retryAfterMs: pauseMs });
    }
    metrics.refusedKeys.inc({ reason: 'wrong' });
    if (guesses.noteWrong(address)) logger.info({ address }, 'wrong_keys_slowed_down');
    throw new EngineError('unauthenticated', 'this key is not known, has expired or was revoked');
  }

  /** Admits a reader of metrics. A key that is not known counts as a wrong one. */
  async function admitToMetrics(secret: string, request: IncomingMessage): Promise<Holder> {
    const verdict = judgeMetricsReader(secret, engine);
    if (verdict === 'unknown') await identify(secret, addressOf(request));
    if (verdict === 'admitted') return METRICS_READER;
    throw metricsRefusal();
  }

  return {
    async admit(request, access, readKey = () => readCredential(request)) {
      if (control.isOpen()) return inTenant(ANYONE, request);
      const secret = readKey();
      const visitor = secret === undefined ? admitSession(request, { access, control }) : undefined;
      if (visitor !== undefined) return visitor;
      if (secret === undefined) {
        if (config.OM_PUBLIC_READS && isReading(access)) return inTenant(PUBLIC_READER, request);
        throw new EngineError('unauthenticated', 'send a key as `Authorization: Bearer <key>` or `x-api-key: <key>`');
      }
      if (access === 'metrics') return admitToMetrics(secret, request);
      return withRole(inTenant(await identify(secret, addressOf(request)), request), access);
    },
    // While no key is configured, and for public reads, a caller without a key stays admitted until that changes.
    isStillAdmitted: (holder) =>
      holder.keyId === 'metrics' ||
      (holder.keyId === 'anonymous'
        ? control.isOpen() || (holder.role === 'read' && config.OM_PUBLIC_READS)
        : control.isHolderValid(holder)),
  };
}

/** Admits the holder of a session; undefined if the request carries none, or one that has ended. */
function admitSession(
  request: IncomingMessage,
  { access, control }: { readonly access: Guarded; readonly control: Engine['control'] },
): Holder | undefined {
  const session = readSession(request);
  const holder = session === undefined ? undefined : control.sessions.find(session);
  if (holder === undefined) return undefined;
  if (access !== 'metrics') return withRole(inTenant(holder, request), access);
  if (holder.role === 'admin' && holder.tenantId === DEFAULT_TENANT) return METRICS_READER;
  throw metricsRefusal();
}

function metricsRefusal(): EngineError {
  return new EngineError(
    'forbidden',
    'the metrics are those of all tenants: this needs an admin key of the default tenant, or OM_METRICS_KEY',
  );
}

/** Returns the holder. Throws EngineError `forbidden` if its role is too small. */
function withRole(holder: Holder, access: GuardedByRole): Holder {
  if (MAY[holder.role].has(access)) return holder;
  throw new EngineError('forbidden', `this needs a key with the role ${access}; yours has ${holder.role}`);
}

/**
 * Returns the holder with the tenant that the request names in `x-cairn-tenant`, by default its first. A tenant that
 * exists and one that does not are refused alike.
 * @throws EngineError `forbidden`
 */
function inTenant(holder: Holder, request: IncomingMessage): Holder {
  const named = request.headersDistinct[TENANT_HEADER];
  if (named === undefined || (named.length === 1 && named[0] === holder.tenantId)) return holder;
  const [tenantId = ''] = named;
  if (named.length > 1 || !holder.tenantIds.includes(tenantId))
    throw new EngineError('forbidden', `${TENANT_HEADER}: your key has no access to this tenant`);
  return { ...holder, tenantId };
}
