import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { Statement } from '../store/statement.ts';
import type { AccessCache } from './access-cache.ts';
import type { Holder } from '../types.ts';
import type { Sessions } from './control-database.ts';
import type { ControlFile } from './control-file.ts';
import { digestOf } from './key-records.ts';
import { createLookupAllowance } from './lookup-allowance.ts';
import type { ServiceAudit } from './service-audit.ts';
import { createSessionSecrets, type SessionSecrets } from './session-secrets.ts';

/** Longest life of a session (ms): a working day, so that a browser left open overnight is signed out. */
const SESSION_MS = 12 * 3_600_000;
/** Greatest number of sessions of one key; a further one ends the oldest. */
const MAX_SESSIONS_OF_KEY = 50;
/** Greatest number of sessions whose rows a process caches (in PostgreSQL only). */
const MAX_KNOWN = 1_000;
/** Time for which the row of a session is cached (ms). */
const KNOWN_MS = 1_000;
/**
 * Greatest number of sessions of which a process remembers that it found or opened them, and again of ended ones of
 * which it remembers that it did not find them (in PostgreSQL only).
 */
const MAX_REMEMBERED = 10_000;
/**
 * Greatest number of sessions that one key may open within `WINDOW_MS` in one process, since each costs a commit and an
 * audit record.
 */
const MAX_OPENED = 30;
const WINDOW_MS = 60_000;
/** Greatest number of keys for which opened sessions are counted; the least recently used key is forgotten first. */
const MAX_COUNTED = 10_000;
const DELETE_SESSION = 'DELETE FROM sessions WHERE digest = ?';

interface SessionRow {
  readonly digest: Buffer;
  readonly key_id: string;
  readonly holder: string;
  readonly bound_to: Buffer | null;
  readonly created_at: number;
  readonly expires_at: number;
}

interface SessionsContext {
  readonly file: ControlFile;
  readonly cache: AccessCache;
  readonly clock: Clock;
  /** SHA-256 of OM_API_KEY; undefined if that is not set. */
  readonly environmentDigest: Buffer | undefined;
  /** Result of `digestOfIssuer` for the settings; undefined without OM_OIDC_ISSUER. */
  readonly issuerDigest: Buffer | undefined;
  readonly isHolderValid: (holder: Holder) => boolean;
  /** The log that records each opened session. */
  readonly audit: Pick<ServiceAudit, 'append'>;
}

/** Makes the functions by which sessions are opened, found and ended. */
export function openSessions({ file, cache, clock, isHolderValid, audit, ...digests }: SessionsContext): Sessions {
  const statements = prepareStatements(file);
  const secrets = createSessionSecrets(file, cache);
  const { find, noteChange } = createFinder(file, statements.find, secrets);
  const opened = new LRUCache<string, { readonly until: number; sessions: number }>({ max: MAX_COUNTED });
  /** Counts an opened session of a key. Throws EngineError `rate_limited` beyond 30 within a minute. */
  const count = (keyId: string, now: number) => {
    let window = opened.get(keyId);
    if (window === undefined || now >= window.until || window.until - now > WINDOW_MS)
      opened.set(keyId, (window = { until: now + WINDOW_MS, sessions: 0 }));
    if (window.sessions >= MAX_OPENED)
      throw new EngineError('rate_limited', `a key opens at most ${MAX_OPENED} sessions a minute`, {
        retryAfterMs: window.until - now,
      });
    window.sessions += 1;
  };

  return {
    open(holder) {
      const now = clock.now();
      count(holder.keyId, now);
      const secret = secrets.make();
      const expiresAt = Math.min(now + SESSION_MS, holder.expiresAt ?? Infinity);
      file.write(() => {
        statements.deleteExpired.run(now);
        statements.deleteOldest.run(holder.keyId, MAX_SESSIONS_OF_KEY - 1);
        statements.insert.run({
          digest: digestOf(secret),
          key_id: holder.keyId,
          holder: JSON.stringify(holder),
          bound_to: bindingOf(secret, holder.keyId, digests) ?? null,
          created_at: now,
          expires_at: expiresAt,
        });
        // In the same commit, so that there is no session without its record.
        audit.append('console.sign_in', { role: holder.role }, holder.keyId);
      });
      noteChange(digestOf(secret));
      return { secret, expiresAt };
    },

    find(secret) {
      if (!secrets.hasForm(secret)) return undefined;
      const row = find(secret);
      if (row === undefined || row.expires_at <= clock.now()) return undefined;
      if (hasNoRow(row.key_id)) {
        const binding = bindingOf(secret, row.key_id, digests);
        if (binding === undefined || row.bound_to === null || !timingSafeEqual(binding, row.bound_to)) return undefined;
      }
      const holder = JSON.parse(row.holder) as Holder;
      return isHolderValid(holder) ? holder : undefined;
    },

    close(secret) {
      const digest = digestOf(secret);
      file.write(() => statements.delete.run(digest));
      noteChange(digest);
    },

    noteChange: (secret) => noteChange(digestOf(secret)),
  };
}

/**
 * Returns a digest of the settings that say whose tokens are accepted and what their claims give; undefined without
 * OM_OIDC_ISSUER. The secret of the client is among them, so a new one ends all sessions of people who signed in.
 */
export function digestOfIssuer(config: Config): Buffer | undefined {
  if (config.OM_OIDC_ISSUER === undefined) return undefined;
  const settings = [
    config.OM_OIDC_ISSUER,
    config.OM_OIDC_JWKS_URL,
    config.OM_OIDC_AUDIENCE,
    config.OM_OIDC_CLIENT_ID,
    config.OM_OIDC_CLIENT_SECRET,
    config.OM_OIDC_TENANT_CLAIM,
    config.OM_OIDC_ROLE_CLAIM,
    config.OM_OIDC_USER_CLAIM,
  ];
  return createHash('sha256')
    .update(JSON.stringify(settings.map((setting) => setting ?? null)))
    .digest();
}

/**
 * Whether a holder, by the id of its key, is OM_API_KEY or a token: it has no row in the control database whose removal
 * would end its sessions.
 */
const hasNoRow = (keyId: string) => keyId === 'environment' || keyId.startsWith('oidc:');

/**
 * Returns a value that binds a session to the present OM_API_KEY, or to the present settings of the issuer if a token
 * opened it: a server that starts with others refuses the session by this value. The digest of the key or of the
 * settings is not stored as it is, since a person may have chosen the key.
 * @returns undefined if the key or the issuer is not set, and for a session of a stored key
 */
function bindingOf(
  secret: string,
  keyId: string,
  { environmentDigest, issuerDigest }: Pick<SessionsContext, 'environmentDigest' | 'issuerDigest'>,
): Buffer | undefined {
  if (!hasNoRow(keyId)) return undefined;
  const digest = keyId === 'environment' ? environmentDigest : issuerDigest;
  return digest && createHash('sha256').update(secret).update(digest).digest();
}

/** Deletes the sessions of all callers that could use this tenant. Call it inside `ControlFile.write`. */
export function deleteSessionsOf({ prepare }: ControlFile, tenantId: string): void {
  const remove = prepare<[Buffer]>(DELETE_SESSION);
  for (const { digest, holder } of prepare<[], SessionRow>('SELECT * FROM sessions').all())
    if ((JSON.parse(holder) as Holder).tenantIds.includes(tenantId)) remove.run(digest);
}

/**
 * Makes functions that find a session's row by its secret, and note that it changed. In PostgreSQL, where a read is a
 * round trip, a found row may be `KNOWN_MS` old, and a secret that this service did not make (`wasMadeHere`) is refused
 * without a read. Of sessions that this process has neither opened nor found before, at most 20 a second are looked up:
 * `find` throws EngineError `unavailable` for a further one. A session that was not found has ended, and never comes
 * back.
 */
function createFinder({ watched }: ControlFile, statement: Statement<[Buffer], SessionRow>, secrets: SessionSecrets) {
  const known = new LRUCache<string, SessionRow>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  const everFound = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const ended = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const mayLookUp = createLookupAllowance();
  /**
   * Whether a session is worth a look-up: not if it is known to have ended, or if this service did not make its secret.
   * Throws EngineError `unavailable` if too many unknown sessions were looked up just now.
   */
  const isWorthALook = (name: string, secret: string) => {
    if (everFound.has(name)) return true;
    if (ended.has(name) || !secrets.wasMadeHere(secret)) return false;
    if (mayLookUp()) return true;
    throw new EngineError('unavailable', 'too many unknown sessions came', { retryAfterMs: 1_000 });
  };
  const nameOf = (digest: Buffer) => digest.toString('base64');
  return {
    find(secret: string): SessionRow | undefined {
      const digest = digestOf(secret);
      if (watched === null) return statement.get(digest);
      const name = nameOf(digest);
      const cached = known.get(name);
      if (cached !== undefined || !isWorthALook(name, secret)) return cached;
      const row = statement.get(digest);
      if (row === undefined) {
        everFound.delete(name);
        ended.set(name, true);
      } else {
        known.set(name, row);
        everFound.set(name, true);
      }
      return row;
    },
    /**
     * Notes that this process opened or ended a session, so that its row is read again, however many unknown sessions
     * are looked up.
     */
    noteChange(digest: Buffer) {
      known.delete(nameOf(digest));
      everFound.set(nameOf(digest), true);
    },
  };
}

function prepareStatements({ prepare }: ControlFile) {
  return {
    find: prepare<[Buffer], SessionRow>('SELECT * FROM sessions WHERE digest = ?'),
    insert: prepare<[SessionRow]>(
      `INSERT INTO sessions (digest, key_id, holder, bound_to, created_at, expires_at)
       VALUES (@digest, @key_id, @holder, @bound_to, @created_at, @expires_at)`,
    ),
    delete: prepare<[Buffer]>(DELETE_SESSION),
    deleteExpired: prepare<[number]>('DELETE FROM sessions WHERE expires_at <= ?'),
    /**
     * Deletes the sessions of a key except its newest ones; the second parameter is the number of sessions that stay.
     */
    deleteOldest: prepare<[string, number]>(
      `DELETE FROM sessions WHERE digest IN
         (SELECT digest FROM sessions WHERE key_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`,
    ),
  };
}
