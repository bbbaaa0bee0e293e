import type { EngineError } from './errors.ts';
import type { RejectedItem } from './types.ts';

/** Makes the result of an item of an add request that was refused, from the error that refused it. */
export function rejected({ code, message }: EngineError): RejectedItem {
  return { kind: 'rejected', error: { code, message } };
}

/** Whether an item of an add request, or its result, is a rejection. */
export function isRejected(item: object): item is RejectedItem {
  return 'kind' in item && item.kind === 'rejected';
}
