import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type Database from 'better-sqlite3';
import type { Clock } from '../ports.ts';
import type { Holder, Sessions } from './control-database.ts';
import { immediately, type ControlFile } from './control-file.ts';
import { digestOf } from './key-records.ts';

/** Time after which a session ends (ms): a working day, so that a browser left open overnight is signed out. */
const SESSION_MS = 12 * 3_600_000;
/** Most sessions of one key; a further one ends the oldest. */
const MAX_SESSIONS_OF_KEY = 50;
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
  /** SHA-256 of OM_API_KEY; undefined without one. */
  readonly environmentDigest: Buffer | undefined;
  readonly isHolderValid: (holder: Holder) => boolean;
}

/** Makes the functions by which sessions are opened, found and ended. */
export function openSessions({ file, clock, environmentDigest, isHolderValid }: SessionsContext): Sessions {
  const statements = prepareStatements(file.db);
  /**
   * What ties a session to OM_API_KEY, which has no row whose revocation would end it: a server that starts with
   * another key does not know the session. The digest of the key alone is not stored, as a person may have chosen it.
   */
  const bindingOf = (secret: string) =>
    environmentDigest && createHash('sha256').update(secret).update(environmentDigest).digest();

  return {
    open(holder) {
      const secret = randomBytes(32).toString('base64url');
      const now = clock.now();
      const expiresAt = Math.min(now + SESSION_MS, holder.expiresAt ?? Infinity);
      immediately(file, () => {
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
      const row = statements.find.get(digestOf(secret));
      if (row === undefined || row.expires_at <= clock.now()) return undefined;
      if (row.key_id === 'environment') {
        const binding = bindingOf(secret);
        if (binding === undefined || row.bound_to === null || !timingSafeEqual(binding, row.bound_to)) return undefined;
      }
      const holder = JSON.parse(row.holder) as Holder;
      return isHolderValid(holder) ? holder : undefined;
    },

    close(secret) {
      immediately(file, () => statements.delete.run(digestOf(secret)));
    },
  };
}

function prepareStatements(db: Database.Database) {
  return {
    find: db.prepare<[Buffer], SessionRow>('SELECT * FROM sessions WHERE digest = ?'),
    insert: db.prepare<[SessionRow]>(
      `INSERT INTO sessions (digest, key_id, holder, bound_to, created_at, expires_at)
       VALUES (@digest, @key_id, @holder, @bound_to, @created_at, @expires_at)`,
    ),
    delete: db.prepare<[Buffer]>('DELETE FROM sessions WHERE digest = ?'),
    deleteExpired: db.prepare<[number]>('DELETE FROM sessions WHERE expires_at <= ?'),
    /** Leaves the newest sessions of a key, as many as the second parameter says. */
    deleteOldest: db.prepare<[string, number]>(
      `DELETE FROM sessions WHERE digest IN
         (SELECT digest FROM sessions WHERE key_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`,
    ),
  };
}
