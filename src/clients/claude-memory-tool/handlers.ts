import { isCairnError, type Client } from '../../client/index.ts';
import { namesIn, namespaceOf, type Names } from './file-path.ts';
import { listingOf, numbered, type File } from './layout.ts';
import { checkUser } from '../check-user.ts';

export interface CairnMemoryFilesOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<
    Client,
    'getItem' | 'putItem' | 'deleteItem' | 'listItems' | 'moveNamespace' | 'deleteNamespace'
  >;
  /** The user who owns the files. */
  readonly userId: string;
}

/**
 * One handler for each command of the memory tool, as `betaMemoryTool` of `@anthropic-ai/sdk` takes them. A handler
 * returns the text of the tool's result. If the command fails, it throws an Error, whose message is to be sent as a
 * result with `is_error`.
 */
export interface CairnMemoryFiles {
  view(command: { path: string; view_range?: number[] }): Promise<string>;
  create(command: { path: string; file_text: string }): Promise<string>;
  str_replace(command: { path: string; old_str: string; new_str?: string }): Promise<string>;
  insert(command: { path: string; insert_line: number; insert_text: string }): Promise<string>;
  delete(command: { path: string }): Promise<string>;
  rename(command: { old_path: string; new_path: string }): Promise<string>;
}

/** Number of lines that the result of `str_replace` shows before and after the change. */
const SURROUNDING_LINES = 2;

/**
 * Stores the files of Claude's memory tool as items of a user on a Cairn server. The file's name is the item's key, and
 * the folder is its namespace, below `memories`. The user's queries also find the texts of the files. `str_replace`,
 * `insert` and `rename` of a file change it only if nobody else has changed it since they read it, and throw a
 * CairnError otherwise. `delete`, and `rename` of a folder, do not check that.
 * @throws TypeError if `userId` is not a string
 * @example client.beta.messages.toolRunner({ tools: [betaMemoryTool(cairnMemoryFiles({ client, userId: 'ana' }))], … })
 */
export function cairnMemoryFiles(options: CairnMemoryFilesOptions): CairnMemoryFiles {
  checkUser(options.userId);
  const files = filesOf(options);
  return {
    async view({ path, view_range: range }) {
      const names = namesIn(path);
      const file = await files.find(names);
      if (file !== undefined) {
        return `Here's the content of ${path} with line numbers:\n${numbered(file.text.split('\n'), range)}`;
      }
      const found = await files.below(names);
      if (found.length === 0 && names.length > 0) throw missing(path);
      return listingOf(names, found);
    },
    async create({ path, file_text: text }) {
      const names = namesIn(path);
      if ((await files.find(names)) !== undefined) throw new Error(`File ${path} already exists`);
      if (names.length === 0 || (await files.below(names)).length > 0) throw new Error(`The path ${path} is a folder.`);
      await files.store(names, text, `File ${path} already exists`);
      return `File created successfully at: ${path}`;
    },
    async str_replace({ path, old_str: old, new_str: replacement = '' }) {
      const { text, etag } = await files.get(path);
      const parts = text.split(old);
      if (old === '' || parts.length === 1) {
        throw new Error(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`);
      }
      const line = lineBreaks(parts[0]!);
      if (parts.length > 2) {
        const places = parts.slice(0, -1).map((_, at) => lineBreaks(parts.slice(0, at + 1).join(old)) + 1);
        throw new Error(
          `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${places.join(', ')}. ` +
            'Please ensure it is unique',
        );
      }
      const changed = parts.join(replacement);
      await files.put(namesIn(path), changed, etag);
      const shown = [line + 1 - SURROUNDING_LINES, line + 1 + lineBreaks(replacement) + SURROUNDING_LINES];
      return (
        'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n' +
        numbered(changed.split('\n'), shown)
      );
    },
    async insert({ path, insert_line: at, insert_text: inserted }) {
      const { text, etag } = await files.get(path);
      const lines = text.split('\n');
      if (!Number.isInteger(at) || at < 0 || at > lines.length) {
        throw new Error(
          `Invalid \`insert_line\` parameter: ${at}. It should be within the range of lines of the file: ` +
            `[0, ${lines.length}]`,
        );
      }
      await files.put(namesIn(path), lines.toSpliced(at, 0, inserted.replace(/\n$/, '')).join('\n'), etag);
      return `The file ${path} has been edited.`;
    },
    async delete({ path }) {
      const names = namesIn(path);
      if (names.length === 0) throw new Error('Cannot delete the /memories directory itself');
      if (!(await files.remove(names))) throw new Error(`The path ${path} does not exist`);
      return `Successfully deleted ${path}`;
    },
    async rename({ old_path: from, new_path: to }) {
      await files.move(from, to);
      return `Successfully renamed ${from} to ${to}`;
    },
  };
}

function lineBreaks(text: string): number {
  return text.split('\n').length - 1;
}

function missing(path: string): Error {
  return new Error(`The path ${path} does not exist. Please provide a valid path.`);
}

// ── Files as items ───────────────────────────────────────────────────────────────────────────────────────────────────

interface FoundFile {
  readonly text: string;
  /** ETag of the item, which names its version and its id. */
  readonly etag: string;
}

/** Greatest number of files that a listing reads; further files are not listed. */
const MAX_LISTED = 1_000;

/** ETag that a put names if there must be no item yet. */
const ABSENT = '"0"';

function filesOf({ client, userId }: CairnMemoryFilesOptions) {
  const user = { user_id: userId };
  const placeOf = (names: Names) => ({ ...user, namespace: namespaceOf(names.slice(0, -1)), key: names.at(-1)! });
  const files = {
    async find(names: Names): Promise<FoundFile | undefined> {
      if (names.length === 0) return undefined;
      const item = await orMissing(client.getItem(placeOf(names)));
      return item === undefined ? undefined : { text: textOf(item.value), etag: etagOf(item) };
    },
    async get(path: string): Promise<FoundFile> {
      const names = namesIn(path);
      const file = await files.find(names);
      if (file !== undefined) return file;
      if (names.length === 0 || (await files.below(names)).length > 0)
        throw new Error(`The path ${path} is not a file.`);
      throw missing(path);
    },
    async below(names: Names): Promise<File[]> {
      const found: File[] = [];
      for await (const item of client.listItems({ ...user, namespace: namespaceOf(names), limit: 100 })) {
        found.push({ namespace: item.namespace, name: item.key, text: textOf(item.value) });
        if (found.length === MAX_LISTED) break;
      }
      return found;
    },
    async put(names: Names, text: string, etag: string): Promise<string> {
      const input = { ...placeOf(names), value: text, content: text };
      return etagOf(await client.putItem(input, { ifMatch: etag }));
    },
    /** Stores a new file; returns its ETag. Throws an Error with the message `taken` if the name is taken. */
    async store(names: Names, text: string, taken: string): Promise<string> {
      try {
        return await files.put(names, text, ABSENT);
      } catch (error) {
        throw isCairnError(error, 'conflict') ? new Error(taken) : error;
      }
    },
    async remove(names: Names): Promise<boolean> {
      const file = await orMissing(client.deleteItem(placeOf(names)));
      if (file !== undefined) return true;
      if ((await files.below(names)).length === 0) return false;
      await client.deleteNamespace({ name: namespaceOf(names), ...user });
      return true;
    },
    async move(from: string, to: string): Promise<void> {
      const [old, names] = [namesIn(from), namesIn(to)];
      if (old.length === 0) throw new Error('Cannot rename the /memories directory itself');
      const taken = `The destination ${to} already exists`;
      const isTaken = names.length === 0 || (await files.find(names)) !== undefined;
      if (isTaken || (await files.below(names)).length > 0) throw new Error(taken);
      const file = await files.find(old);
      if (file !== undefined) {
        const copy = await files.store(names, file.text, taken);
        try {
          // If it is gone, somebody has deleted it, or an earlier try of this call has: the copy may be all there is.
          await orMissing(client.deleteItem(placeOf(old), { ifMatch: file.etag }));
        } catch (error) {
          // Somebody has changed the file since it was read, so the copy is not what it holds.
          const isOutdated = isCairnError(error, 'conflict') && (await files.find(old)) !== undefined;
          if (isOutdated) await client.deleteItem(placeOf(names), { ifMatch: copy });
          throw error;
        }
        return;
      }
      if ((await files.below(old)).length === 0) throw new Error(`The path ${from} does not exist`);
      await client.moveNamespace({ name: namespaceOf(old), to: namespaceOf(names), ...user });
    },
  };
  return files;
}

/** Returns the ETag of an item, as the header of the reply has it. */
function etagOf({ version, id }: { readonly version: number; readonly id: string }): string {
  return `"${version}-${id}"`;
}

async function orMissing<Value>(reply: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reply;
  } catch (error) {
    if (isCairnError(error, 'not_found')) return undefined;
    throw error;
  }
}

/** Returns the text of an item. If another program stored a value that is not a string, it is its JSON. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
