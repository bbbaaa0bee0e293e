import { expect } from 'vitest';
import { EngineError } from '../../src/engine/errors.ts';

/**
 * Returns the error with which a call to a provider rejects. It checks for every error that it has a code of
 * EngineError, and that it repeats no secret, which the fake provider marks with `canary`.
 */
export async function refusedCall(call: Promise<unknown>): Promise<EngineError> {
  const error = await call.then(
    () => expect.unreachable('the reply was accepted'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EngineError);
  const { message, cause } = error as EngineError;
  expect(message).not.toMatch(/canary/);
  expect(cause).toBeUndefined();
  return error as EngineError;
}
