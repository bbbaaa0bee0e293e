/** The further databases of `OM_DATABASES`, by name. */

/** Name of the database of OM_DATABASE_URL, in commands and replies. No further database may have it. */
export const HOME_DATABASE = 'home';
/** Greatest number of further databases. Each thread may have a connection or two to each of them. */
const MAX_DATABASES = 64;
const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;
/**
 * Matches the comma before a further entry. Any other comma belongs to an address, which is then refused as a whole: it
 * must write the comma as `%2C`.
 */
const SEPARATOR = /\s*,\s*(?=[^,=\s]*=postgres(?:ql)?:\/\/)/;

/** The form of the setting, for messages. */
export const DATABASES_FORM =
  `expected name=postgres://…, comma-separated, at most ${MAX_DATABASES}; a name has 1..32 of a-z, 0-9, - and _, ` +
  `begins with a letter or digit, is not ${HOME_DATABASE} and is given once, as is an address`;

/**
 * Reads the setting `OM_DATABASES`.
 * @param text such as `eu=postgres://…,us=postgres://…`; '' for none
 * @returns the addresses by name; undefined if the text has another form
 */
export function parseDatabases(text: string): Readonly<Record<string, string>> | undefined {
  const entries = text.trim() === '' ? [] : text.trim().split(SEPARATOR);
  const databases = entries.map((entry): readonly [string, string] => {
    const at = entry.indexOf('=');
    return [entry.slice(0, Math.max(0, at)), entry.slice(at + 1)];
  });
  const isWrong = databases.some(([name, url]) => !NAME.test(name) || name === HOME_DATABASE || !isAddress(url));
  const areSame = [0, 1].some((part) => new Set(databases.map((entry) => entry[part])).size < databases.length);
  if (isWrong || areSame || databases.length > MAX_DATABASES) return undefined;
  return Object.freeze(Object.fromEntries(databases));
}

function isAddress(url: string): boolean {
  return URL.canParse(url) && /^postgres(?:ql)?:$/.test(new URL(url).protocol) && !/[\s,]/.test(url);
}
