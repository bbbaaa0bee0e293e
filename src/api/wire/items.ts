/** Translates items between the engine's names and the field names of the API. */
import { type ItemPlace, jsonOf, type Memory, type NewItem } from '../../engine/index.ts';
import type { ItemPlaceBody, ItemReply, NewItemBody } from '../schemas/items.ts';
import { memoryItem, toDescription } from './memories.ts';

export function toItemPlace({ user_id, namespace, key }: ItemPlaceBody): ItemPlace {
  return { userId: user_id ?? '', namespace: namespace ?? '', key };
}

/**
 * Translates an item that a request stores. Fields that were left out get their defaults: '' for the user and the
 * namespace, null for the text and the value, and else those of `toDescription`.
 */
export function toNewItem(body: NewItemBody): NewItem {
  return {
    ...toItemPlace(body),
    content: body.content ?? null,
    value: body.value ?? null,
    ...toDescription(body),
  };
}

export function itemOf(memory: Memory): ItemReply {
  const { namespace } = memory;
  return { ...memoryItem(memory), key: memory.externalId ?? '', namespace, value: jsonOf(memory, 'value') };
}
