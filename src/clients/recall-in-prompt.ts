/**
 * Recalled memories in the prompt of a language model, in the form that the AI SDK gives prompts and Mastra takes over
 * from it. Memories stand in a message of their own with the role `user`, before the user's last message: a text that
 * may come from anywhere has no place among the instructions of the system, and what stands before it can stay in a
 * provider's cache.
 */

/** A message of a prompt, as far as it is looked at. */
export interface PromptMessage {
  readonly role: string;
  readonly content: unknown;
}

/** The text of the user's last message; '' if there is none. */
export function askedIn(prompt: readonly PromptMessage[]): string {
  const message = prompt.findLast(({ role }) => role === 'user');
  return message === undefined ? '' : textOf(message.content);
}

/** The texts of a message's parts, each on lines of its own; other parts, such as files, are left out. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content as readonly { readonly type?: unknown; readonly text?: unknown }[];
  const texts = parts.map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : ''));
  return texts.filter((text) => text !== '').join('\n');
}

/** Returns the prompt with recalled memories before the user's last message; the prompt itself if `recalled` is ''. */
export function withRecalled<Message extends PromptMessage>(prompt: Message[], recalled: string): Message[] {
  const place = prompt.findLastIndex(({ role }) => role === 'user');
  if (recalled === '' || place === -1) return prompt;
  const message = { role: 'user', content: [{ type: 'text', text: recalled }] };
  // Every prompt of this form has messages of the user with parts of text.
  return prompt.toSpliced(place, 0, message as unknown as Message);
}
