/**
 * Puts recalled memories into the prompt of a language model. The prompt has the form of the AI SDK, which Mastra uses
 * as well. The memories stand in a message of their own, with the role `user`, before the user's last message. They may
 * come from anyone, so they must not be among the instructions of the system; and the messages before them stay the
 * same, so a provider's cache of the prompt stays valid.
 */

/** A message of a prompt, with the fields that are used here. */
export interface PromptMessage {
  readonly role: string;
  readonly content: unknown;
}

/** Returns the text of the prompt's last message of the role `user`; '' if there is none. */
export function askedIn(prompt: readonly PromptMessage[]): string {
  const message = prompt.findLast(({ role }) => role === 'user');
  return message === undefined ? '' : textOf(message.content);
}

/**
 * Returns the texts of a message's content, one after the other, each on lines of its own. Files and other parts that
 * are not text are left out.
 */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content as readonly { readonly type?: unknown; readonly text?: unknown }[];
  const texts = parts.map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : ''));
  return texts.filter((text) => text !== '').join('\n');
}

/**
 * Returns the prompt with the recalled memories in a message before the user's last one. If `recalled` is '' or the
 * prompt has no message of the user, returns the prompt itself.
 */
export function withRecalled<Message extends PromptMessage>(prompt: Message[], recalled: string): Message[] {
  const place = prompt.findLastIndex(({ role }) => role === 'user');
  if (recalled === '' || place === -1) return prompt;
  const message = { role: 'user', content: [{ type: 'text', text: recalled }] };
  // Every prompt of this form has messages of the user with parts of text.
  return prompt.toSpliced(place, 0, message as unknown as Message);
}
