import type { EngineError } from './errors.ts';
import type { RejectedItem } from './types.ts';

/** Makes the item of an add that stands in place of one that is refused with this error. */
export function rejected({ code, message }: EngineError): RejectedItem {
  return { kind: 'rejected', error: { code, message } };
}

/** Whether an item of an add, or its outcome, is a refusal. */
export function isRejected(item: object): item is RejectedItem {
  return 'kind' in item && item.kind === 'rejected';
}
