import type { Request, Response } from 'express';
import {
  DEFAULT_TENANT,
  type Engine,
  EngineError,
  isFromHere,
  type Principal,
  readCredential,
  type Role,
} from '../../engine/index.ts';
import type { Access } from '../route.ts';

const RANK: Readonly<Record<Role, number>> = { read: 0, write: 1, admin: 2 };
const ANYONE: Principal = { tenantId: DEFAULT_TENANT, role: 'admin', keyId: 'anonymous' };
const PUBLIC_READER: Principal = { tenantId: DEFAULT_TENANT, role: 'read', keyId: 'anonymous' };

/**
 * Who is calling. Without any configured key everyone on this machine is the default tenant's admin. A wrong key is a 401
 * like a missing one, so that nothing tells a guesser what it met; a key whose role is too small is a 403.
 * @throws EngineError `unauthenticated`, `forbidden`
 */
export function authenticate(request: Request, engine: Engine, access: Exclude<Access, 'anyone'>): Principal {
  return admit(() => readCredential(request), engine, access);
}

/** The same for a key that came in another way; it is read only where there are keys. */
export function admit(readKey: () => string | undefined, engine: Engine, access: Exclude<Access, 'anyone'>): Principal {
  if (engine.control.isOpen()) return ANYONE;
  const secret = readKey();
  if (secret === undefined) {
    if (engine.config.OM_PUBLIC_READS && access === 'read') return PUBLIC_READER;
    throw new EngineError('unauthenticated', 'send a key as `Authorization: Bearer <key>` or `x-api-key: <key>`');
  }
  const principal = engine.control.authenticate(secret);
  if (principal === undefined) throw new EngineError('unauthenticated', 'this key is not known or was revoked');
  if (access !== 'key' && RANK[principal.role] < RANK[access]) {
    throw new EngineError('forbidden', `this needs a key with the role ${access}; yours has ${principal.role}`);
  }
  return principal;
}

/**
 * Without a key only this machine is served, and only under its own name. Asked at each request, as the last key may be revoked
 * while running.
 * @throws EngineError `forbidden`
 */
export function refuseStrangersWhileOpen(engine: Engine) {
  return (request: Request, _response: Response, next: () => void): void => {
    if (engine.control.isOpen() && !isFromHere(request)) {
      throw new EngineError(
        'forbidden',
        'no key is configured, so only http://localhost and loopback addresses are answered',
      );
    }
    next();
  };
}
