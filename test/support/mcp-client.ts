import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/**
 * The two protocol revisions that clients use: that of 2025 with a handshake (`legacy`), and that of 2026-07-28 without
 * one (`modern`).
 */
export const ERAS = ['legacy', 'modern'] as const;
export type Era = (typeof ERAS)[number];

/** Returns the official MCP client, connected to an endpoint. */
export async function connectMcp(url: string, { era = 'modern', key }: { era?: Era; key?: string | null } = {}) {
  const client = newClient(era);
  const headers = key == null ? {} : { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

/** Returns the official MCP client, connected to a process over its standard input and output. */
export async function connectStdio(
  command: { readonly command: string; readonly args: string[]; readonly env: Record<string, string> },
  era: Era = 'modern',
) {
  const client = newClient(era);
  const transport = new StdioClientTransport({ ...command, stderr: 'pipe' });
  const stderr: string[] = [];
  transport.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk.toString()));
  await client.connect(transport);
  return { client, transport, stderr };
}

function newClient(era: Era): Client {
  return new Client(
    { name: 'test', version: '0.0.0' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } },
  );
}

/**
 * Calls a tool and returns the text of its result.
 * @throws Error with the text if the result is an error
 */
export async function callTool(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { text, isError } = await tryTool(client, name, args);
  if (isError) throw new Error(text);
  return text;
}

export async function tryTool(client: Client, name: string, args: Record<string, unknown> = {}) {
  const result = await client.callTool({ name, arguments: args });
  const [content] = result.content as { type: string; text: string }[];
  return { text: content?.text ?? '', isError: result.isError === true, parts: result.content.length };
}
