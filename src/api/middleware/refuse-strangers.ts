import type { Request, Response } from 'express';
import { type Engine, EngineError, isFromHere } from '../../engine/index.ts';

/**
 * Makes the middleware that refuses requests from other machines while no key is configured. Requests from this machine
 * must also address it by a local name. It checks each request, as the last key may be revoked while the server runs.
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
