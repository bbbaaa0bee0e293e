import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { Statement } from '../store/statement.ts';
import type { Holder, Sessions } from './control-database.ts';
import type { ControlFile } from './control-file.ts';
import { digestOf } from './key-records.ts';

/** Longest life of a session (ms): a working day, so that a browser left open overnight is signed out. */
const SESSION_MS = 12 * 3_600_000;
/** Greatest number of sessions of one key; a further one ends the oldest. */
const MAX_SESSIONS_OF_KEY = 50;
/** Greatest number of sessions that a process caches (in PostgreSQL only), and how long it caches each of them (ms). */
const MAX_KNOWN = 1_000;
const KNOWN_MS = 1_000;
/**
 * Greatest number of sessions that one key may open within `WINDOW_MS` in one process, since each costs a commit and an
 * audit record.
 */
const MAX_OPENED = 30;
const WINDOW_MS = 60_000;
/** Greatest number of keys for which opened sessions are counted; the least recently used key is forgotten first. */
const MAX_COUNTED = 10_000;
const DELETE_SESSION = 'DELETE FROM sessions WHERE digest = ?';
/** Form of a session's secret. */
const SECRET = /^[\w-]{43}$/;

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
  readonly clock: Clock;
  /** SHA-256 of OM_API_KEY; undefined if that is not set. */
  readonly environmentDigest: Buffer | undefined;
  readonly isHolderValid: (holder: Holder) => boolean;
}

/** Makes the functions by which sessions are opened, found and ended. */
export function openSessions({ file, clock, environmentDigest, isHolderValid }: SessionsContext): Sessions {
  const statements = prepareStatements(file);
  /**
   * Returns a value that binds a session to the present OM_API_KEY; undefined if OM_API_KEY is not set. That key has no
   * row whose revocation would end the session, so a server that starts with another key refuses the session by this
   * value. The plain digest of the key is not stored, as a person may have chosen the key.
   */
  const bindingOf = (secret: string) =>
    environmentDigest && createHash('sha256').update(secret).update(environmentDigest).digest();

  const { find, forget } = createFinder(file, statements.find);
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
      const secret = randomBytes(32).toString('base64url');
      const now = clock.now();
      count(holder.keyId, now);
      const expiresAt = Math.min(now + SESSION_MS, holder.expiresAt ?? Infinity);
      file.write(() => {
        statements.deleteExpired.run(now);
        statements.deleteOldest.run(holder.keyId, MAX_SESSIONS_OF_KEY - 1);
        statements.insert.run({
          digest: digestOf(secret),
          key_id: holder.keyId,
          holder: JSON.stringify(holder),
          bound_to: holder.keyId === 'environment' ? (bindingOf(secret) ?? null) : null,
          created_at: now,
          expires_at: expiresAt,
        });
      });
      return { secret, expiresAt };
    },

    find(secret) {
      if (!SECRET.test(secret)) return undefined;
      const row = find(digestOf(secret));
      if (row === undefined || row.expires_at <= clock.now()) return undefined;
      if (row.key_id === 'environment') {
        const binding = bindingOf(secret);
        if (binding === undefined || row.bound_to === null || !timingSafeEqual(binding, row.bound_to)) return undefined;
      }
      const holder = JSON.parse(row.holder) as Holder;
      return isHolderValid(holder) ? holder : undefined;
    },

    close(secret) {
      const digest = digestOf(secret);
      file.write(() => statements.delete.run(digest));
      forget(digest);
    },
  };
}

/** Deletes the sessions of all callers that could use this tenant. Call it inside `ControlFile.write`. */
export function deleteSessionsOf({ prepare }: ControlFile, tenantId: string): void {
  const remove = prepare<[Buffer]>(DELETE_SESSION);
  for (const { digest, holder } of prepare<[], SessionRow>('SELECT * FROM sessions').all())
    if ((JSON.parse(holder) as Holder).tenantIds.includes(tenantId)) remove.run(digest);
}

/**
 * Makes functions that find a session's row by the digest of its secret, and forget a cached row. In PostgreSQL, where
 * a read is a round trip, a found row may be `KNOWN_MS` old.
 */
function createFinder({ watched }: ControlFile, statement: Statement<[Buffer], SessionRow>) {
  const known = new LRUCache<string, { readonly row: SessionRow | undefined }>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  return {
    find(digest: Buffer): SessionRow | undefined {
      if (watched === null) return statement.get(digest);
      const name = digest.toString('base64');
      let found = known.get(name);
      if (found === undefined) known.set(name, (found = { row: statement.get(digest) }));
      return found.row;
    },
    forget: (digest: Buffer) => void known.delete(digest.toString('base64')),
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
    /** Deletes the sessions of a key except its newest ones; the second parameter is the number of those. */
    deleteOldest: prepare<[string, number]>(
      `DELETE FROM sessions WHERE digest IN
         (SELECT digest FROM sessions WHERE key_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`,
    ),
  };
}
