import { CliError } from './cli-error.ts';
import { ConnectionError, type Client } from './client.ts';
import { count } from './terminal.ts';

/** What became of the lines of an import. */
export interface ImportCounts {
  accepted: number;
  duplicate: number;
  rejected: number;
}

/** A result has the number of its line; the summary at the end has none. */
interface ReplyLine {
  readonly line?: number;
  readonly deduplicated?: boolean;
  readonly error?: { readonly code: string; readonly message: string };
}

/**
 * Sends memories as NDJSON, one a line, and counts what became of each as the replies come in.
 * @param onResult told of each line by its number as it is answered, with the reason if it was rejected
 * @throws CliError when the server or the connection fails on the way; every line that was answered is stored
 */
export async function sendMemories(
  client: Client,
  body: AsyncIterable<Uint8Array | string>,
  onResult: (counts: ImportCounts, line: number, refusal?: string) => void,
): Promise<ImportCounts> {
  const counts: ImportCounts = { accepted: 0, duplicate: 0, rejected: 0 };
  try {
    for await (const reply of client.exchangeLines('/memory/add/batch', body)) {
      const { line, error, deduplicated = false } = reply as ReplyLine;
      if (line === undefined) {
        if (error !== undefined) throw brokenOff(`the server stopped (${error.message})`, counts);
        return counts;
      }
      counts[error !== undefined ? 'rejected' : deduplicated ? 'duplicate' : 'accepted']++;
      onResult(counts, line, error?.message);
    }
  } catch (error) {
    if (error instanceof ConnectionError && answered(counts) > 0) throw brokenOff('the connection broke off', counts);
    throw error;
  }
  throw brokenOff('the connection broke off', counts);
}

function brokenOff(reason: string, counts: ImportCounts): CliError {
  return new CliError(
    `${reason} after ${count(answered(counts))} lines: run the same command again, what is stored already is recognised`,
  );
}

function answered({ accepted, duplicate, rejected }: ImportCounts): number {
  return accepted + duplicate + rejected;
}
