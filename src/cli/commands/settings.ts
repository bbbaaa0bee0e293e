import { connect, type ConnectionOptions } from '../client.ts';
import { cut, dim, print, table, widthOfTerminal } from '../terminal.ts';

interface SettingsOptions extends ConnectionOptions {
  /** True to list only settings that the environment gives. */
  readonly set?: boolean;
  readonly json?: boolean;
}

/**
 * Runs `cairn settings [WORDS]`: prints the settings with which the server was started, and where each value comes
 * from.
 * @param words words that the name or description of a setting must contain; with none, all settings are printed
 */
export async function settings(words: readonly string[], options: SettingsOptions): Promise<void> {
  const { set: isSet = false, json, ...connection } = options;
  const reply = await connect(connection).listSettings();
  const items = reply.items.filter(
    ({ name, about, origin }) =>
      (!isSet || origin === 'environment') &&
      words.every((word) => `${name} ${about}`.toLowerCase().includes(word.toLowerCase())),
  );
  if (json) return print(JSON.stringify({ items }, null, 2));
  if (items.length === 0) return print('No setting has these words.');
  const rows = items.map(({ name, value, hidden, origin }) => [
    name,
    hidden ? 'set, not shown' : cut(value ?? '–', Math.max(20, widthOfTerminal() - 50)),
    origin === 'environment' ? 'the environment' : dim('default'),
  ]);
  const [head, ...body] = table([['setting', 'value', 'comes from'], ...rows], '<<<');
  print(dim(head!), ...body);
}
