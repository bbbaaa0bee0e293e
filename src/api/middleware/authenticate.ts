import type { Request, Response } from 'express';
import { isLoopback } from '../../engine/config.ts';
import type { Principal, Role } from '../../engine/control/control-database.ts';
import { DEFAULT_TENANT } from '../../engine/control/open-control-database.ts';
import type { Engine } from '../../engine/engine.ts';
import { EngineError } from '../../engine/errors.ts';
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
  if (engine.control.isOpen()) return ANYONE;
  const secret = credentialOf(request);
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
 * Without a key only this machine is served, and only under its own name: a web page whose host name was rebound to
 * 127.0.0.1 sends its own name as Host. The address is checked too, as the last key may be revoked while running.
 * @throws EngineError `forbidden`
 */
export function refuseStrangersWhileOpen(engine: Engine) {
  return (request: Request, _response: Response, next: () => void): void => {
    if (engine.control.isOpen() && !(isLoopback(localAddressOf(request)) && isLoopback(hostNameOf(request)))) {
      throw new EngineError(
        'forbidden',
        'no key is configured, so only http://localhost and loopback addresses are answered',
      );
    }
    next();
  };
}

const SCHEME = /^(?:bearer|apikey) +([\x21-\x7e]+) *$/i;

/** The one credential sent, undefined if none. Two of them, or an unreadable one, are refused rather than guessed at. */
function credentialOf(request: Request): string | undefined {
  const { authorization = [], 'x-api-key': apiKey = [] } = request.headersDistinct;
  if (authorization.length + apiKey.length === 0) return undefined;
  const secret = authorization.length === 1 ? SCHEME.exec(authorization[0]!)?.[1] : apiKey[0];
  if (authorization.length + apiKey.length > 1 || secret === undefined || secret === '') {
    throw new EngineError(
      'unauthenticated',
      'send exactly one key, as `Authorization: Bearer <key>` or `x-api-key: <key>`',
    );
  }
  return secret;
}

/** IPv4 seen by a socket that listens on both families comes as ::ffff:127.0.0.1. */
function localAddressOf(request: Request): string {
  return (request.socket.localAddress ?? '').replace(/^::ffff:/, '');
}

function hostNameOf(request: Request): string {
  return (request.headers.host ?? '').replace(/:\d{1,5}$/, '').toLowerCase();
}
