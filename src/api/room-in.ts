import type { Response } from 'express';
import { EngineError } from '../engine/index.ts';

/**
 * Checks that the client of a response is still connected.
 * @throws EngineError `unavailable` if it has left
 */
export function requireClient(response: Response): void {
  if (response.destroyed) throw hasLeft();
}

/**
 * Waits until a response can take more bytes, since its client has read enough. If that takes `stallMs`, the connection
 * is closed, even if the cause is an earlier response on the same connection.
 * @throws EngineError `unavailable` if the client left or its connection was closed
 */
export function roomIn(response: Response, stallMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = () => reject(hasLeft());
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

function hasLeft(): EngineError {
  return new EngineError('unavailable', 'the client left before the reply was sent');
}
