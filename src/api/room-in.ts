import type { Response } from 'express';
import { EngineError } from '../engine/index.ts';

/**
 * Waits until the client has read enough of a response that more can be written. A client that reads nothing for
 * `stallMs` is cut off; a response that another one on the same connection keeps from being sent counts as such.
 * @throws EngineError `unavailable` if the client left or was cut off
 */
export function roomIn(response: Response, stallMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = () => reject(new EngineError('unavailable', 'the client left before the reply was sent'));
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
