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
 * Identifies the caller by the key in the request's headers, and checks its role. Without any configured key every
 * caller is admin of the default tenant, as `refuseStrangersWhileOpen` lets only this machine through. With
 * `OM_PUBLIC_READS` a caller without a key may read the default tenant. A wrong key is a 401 like a missing one, so
 * that a guesser learns nothing; a key whose role is too small is a 403.
 * @throws EngineError `unauthenticated`, `forbidden`
 */
export function authenticate(request: Request, engine: Engine, access: Exclude<Access, 'anyone'>): Principal {
  return admit(() => readCredential(request), engine, access);
}

/**
 * Identifies the caller like `authenticate`, by the key that `readKey` reads; undefined from it means that there is
 * none. `readKey` is called only if keys are configured.
 */
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
 * Middleware that refuses other machines while no key is configured; requests from this machine must also address it by
 * a local name. It checks at each request, as the last key may be revoked while the server runs.
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
