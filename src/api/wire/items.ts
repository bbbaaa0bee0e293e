/** Translation of items between the engine's names and the names of the wire. */
import type { ItemPlace, Memory, NewItem } from '../../engine/index.ts';
import type { ItemPlaceBody, ItemReply, NewItemBody } from '../schemas/items.ts';
import { memoryItem, toDescription } from './memories.ts';

export function toItemPlace({ user_id, namespace, key }: ItemPlaceBody): ItemPlace {
  return { userId: user_id ?? '', namespace: namespace ?? '', key };
}

/** Translates an item to put; what was left out says nothing. */
export function toNewItem(body: NewItemBody): NewItem {
  return {
    ...toItemPlace(body),
    content: body.content ?? null,
    value: body.value ?? null,
    ...toDescription(body),
  };
}

export function itemOf(memory: Memory): ItemReply {
  const { namespace, value } = memory;
  return { ...memoryItem(memory), key: memory.externalId ?? '', namespace, value };
}
