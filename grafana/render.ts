import prettier from 'prettier';
import { toGrafana, type Dashboard } from './dashboard.ts';

/** JSON file of a dashboard for Grafana, in this project's format. */
export async function render(dashboard: Dashboard): Promise<string> {
  return prettier.format(JSON.stringify(toGrafana(dashboard), undefined, 2), { parser: 'json', printWidth: 120 });
}

export function fileOf(dashboard: Dashboard): string {
  return `${dashboard.uid}.json`;
}
