import type { Request, Response } from 'express';
import { type Engine, EngineError, isFromHere } from '../../engine/index.ts';

/**
 * Makes the middleware that refuses requests from other machines while no key is configured. Requests from this machine
 * must also address it by a local name. It checks each request, as the first key may be made while the server runs:
 * from then on it refuses nobody, since every request needs a key.
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
