import type { EngineError } from './errors.ts';
import type { RejectedItem } from './types.ts';

/** Makes the rejected item that takes the place of an item of an add, from the error that refused it. */
export function rejected({ code, message }: EngineError): RejectedItem {
  return { kind: 'rejected', error: { code, message } };
}

/** Whether an item of an add, or its outcome, is a rejection. */
export function isRejected(item: object): item is RejectedItem {
  return 'kind' in item && item.kind === 'rejected';
}
