import { expect } from 'vitest';
import { EngineError } from '../../src/engine/errors.ts';

/**
 * The error of a call to a provider, after checks that hold for every error: its code is an EngineError's, and it
 * repeats nothing secret, which the fake provider marks with `canary`.
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
