import type { Response } from 'express';
import type { EngineError } from '../engine/index.ts';
import { withoutStack } from './without-stack.ts';

/**
 * Checks that the client of a response is still connected.
 * @throws EngineError `unavailable` if it has left
 */
export function requireClient(response: Response): void {
  if (response.destroyed) throw clientLeftError();
}

/**
 * Waits until the client has read enough of what was sent, so that the response can take more bytes. Call it only if
 * `write` has returned false or `writableNeedDrain` is true: otherwise it waits in vain. If the client takes longer
 * than `stallMs` milliseconds, its connection is closed, even if it stalled on an earlier response of the same
 * connection.
 * @throws EngineError `unavailable` if the client left or its connection was closed
 */
export function awaitDrain(response: Response, stallMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = () => reject(clientLeftError());
  const timer = setTimeout(() => {
    response.req.socket.destroy();
    response.destroy();
    onClose();
  }, stallMs);
  response.once('drain', resolve).once('close', onClose);
  if (response.destroyed) onClose();
  return promise.finally(() => {
    clearTimeout(timer);
    response.off('drain', resolve).off('close', onClose);
  });
}

/** Makes the EngineError `unavailable` of a request whose client has left. */
export function clientLeftError(): EngineError {
  return withoutStack('unavailable', 'the client left before the reply was sent');
}
