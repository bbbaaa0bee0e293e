import fs from 'node:fs';
import type { PostgresServer } from './postgres.ts';

/** A node of a plan that ran, as EXPLAIN gives it in JSON. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** What a statement did when it ran. */
export interface RunStatement {
  readonly text: string;
  /** Tables that were read from their beginning to their end. */
  readonly readWhole: readonly string[];
  /** Number of rows that were read from tables, those that a condition then dropped included. */
  readonly rowsRead: number;
  /** Number of pairs of rows that joins made and whose condition then dropped them. */
  readonly pairsDropped: number;
  /** Number of rows that the statement returned or changed. */
  readonly rowsReturned: number;
}

/**
 * Lets the server note how it runs each statement of the role of an address, from the role's next connection on.
 * @returns reads what was noted since the last call
 */
export async function watchPlans(server: PostgresServer, url: string): Promise<() => RunStatement[]> {
  const role = new URL(url).username;
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_format': 'json',
  };
  for (const [name, value] of Object.entries(settings)) {
    await server.read(url, `ALTER ROLE ${role} SET ${name} = '${value}'`);
  }
  let end = fs.statSync(server.log).size;
  return () => {
    const log = fs.readFileSync(server.log).subarray(end);
    end += log.length;
    const plans = log.toString().matchAll(/LOG: {2}duration: [\d.]+ ms {2}plan:\n((?:\t.*\n)+)/g);
    return [...plans].map(([, json]) => readPlan(JSON.parse(json!.replaceAll(/^\t/gm, '')) as LoggedPlan));
  };
}

interface LoggedPlan {
  readonly 'Query Text': string;
  readonly Plan: PlanNode;
}

function readPlan({ 'Query Text': text, Plan: plan }: LoggedPlan): RunStatement {
  const nodes = nodesOf(plan);
  const scans = nodes.filter((node) => /Scan$/.test(node['Node Type']) && node['Relation Name'] !== undefined);
  return {
    text,
    readWhole: scans
      .filter((node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0)
      .map((node) => node['Relation Name']!),
    rowsRead: scans.reduce((sum, node) => sum + rowsReadBy(node), 0),
    pairsDropped: nodes.reduce(
      (sum, node) => sum + (node['Rows Removed by Join Filter'] ?? 0) * node['Actual Loops'],
      0,
    ),
    rowsReturned: Math.max(...[plan, ...(plan.Plans ?? [])].map((node) => node['Actual Rows'])),
  };
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function rowsReadBy(node: PlanNode): number {
  const dropped = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return (node['Actual Rows'] + dropped) * node['Actual Loops'];
}
