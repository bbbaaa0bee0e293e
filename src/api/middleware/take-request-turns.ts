import type { RequestHandler } from 'express';
import { networkOf } from '../../engine/index.ts';
import type { ClientAddressOf } from '../../client-address.ts';
import { createTurnLine } from '../turn-line.ts';

/**
 * Makes the middleware that lets requests go on for about 3 ms in each turn of the event loop, and the others in later
 * turns. Any number of connections may become readable at once, and Node hands over the requests of all of them in one
 * turn: the check of a key and an answer 401 for each of 2,000 held the thread for a second. Networks of clients
 * (`networkOf`) that wait take turns with each other. A request that comes alone goes on at once. One whose connection
 * is closed before its turn comes ends here.
 */
export function takeRequestTurns(addressOf: ClientAddressOf): RequestHandler {
  const line = createTurnLine();
  return (request, _response, next) => {
    if (line.isFree()) return next();
    line
      .wait(networkOf(addressOf(request)))
      .then(() => {
        if (!request.socket.destroyed) next();
      })
      .catch(next);
  };
}
