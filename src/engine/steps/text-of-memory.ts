import type { MemoryRow } from '../store/memories.ts';

/** Joins the title and the content of a memory to the text that models read and patterns search. */
export function textOfMemory({ title, content }: Pick<MemoryRow, 'title' | 'content'>): string {
  return title === '' ? content : `${title}\n${content}`;
}
