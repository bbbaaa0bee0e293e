/** A dashboard as it is written here, and as Grafana reads it (its JSON model, schema version 39). */

export interface Dashboard {
  /** Part of its address, and the name of its file: never changed, since links and bookmarks hold it. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly rows: readonly Row[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Panel {
  readonly title: string;
  /** What it says and what to look for; Grafana shows it behind a sign. */
  readonly description: string;
  /** A number, or lines over time. */
  readonly kind: 'stat' | 'lines';
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Of the 24 columns of a row; 4 for a stat and 8 for lines by default. */
  readonly width?: number;
  /** From where on it is coloured: the same numbers as in the alerts. */
  readonly thresholds?: Thresholds;
  /** Lines that are parts of one whole lie upon each other. */
  readonly isStacked?: boolean;
  /** Uid of the dashboard that says more. */
  readonly more?: string;
  /** Why a service under load, with a Redis and a provider, may have nothing to show here; without a reason it must. */
  readonly mayBeEmpty?: string;
}

export interface Query {
  readonly expr: string;
  /** Of a line; may hold labels as `{{step}}`. */
  readonly legend: string;
}

export interface Thresholds {
  readonly warning?: number;
  readonly critical?: number;
  /** The lower, the worse: red below `critical`. */
  readonly isFloor?: boolean;
}

/** Grafana's ids of units. `cpm` is events a minute, `percentunit` a share from 0 to 1. */
export type Unit = 'short' | 's' | 'bytes' | 'Bps' | 'percentunit' | 'reqps' | 'ops' | 'cpm' | 'currencyUSD';

/** Whichever Prometheus the reader picks. */
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
const COLUMNS = 24;
const WIDTH = { stat: 4, lines: 8 } as const;
const HEIGHT = { stat: 4, lines: 8 } as const;
const COLOURS = { good: 'green', warning: 'orange', critical: 'red' } as const;

export function toGrafana({ uid, title, description, rows }: Dashboard): object {
  return {
    uid,
    title,
    description,
    tags: ['cairn'],
    schemaVersion: 39,
    editable: false,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: 'browser',
    annotations: { list: annotations() },
    links: [
      { type: 'dashboards', title: 'Cairn', tags: ['cairn'], asDropdown: false, includeVars: true, keepTime: true },
    ],
    templating: { list: variables() },
    panels: layOut(rows),
  };
}

/** What every dashboard marks on all its panels. */
function annotations(): object[] {
  return [
    {
      name: 'Restarts',
      datasource: DATASOURCE,
      enable: true,
      iconColor: 'blue',
      // The first minute of each process.
      expr: 'time() - process_start_time_seconds{job=~"cairn-.+",instance=~"$instance"} < 60',
      titleFormat: 'Start of {{job}} {{instance}}',
      step: '15s',
    },
    {
      name: 'Alerts',
      datasource: DATASOURCE,
      enable: true,
      iconColor: 'red',
      expr: 'ALERTS{alertname=~"Cairn.+",alertstate="firing"}',
      titleFormat: '{{alertname}}',
      tagKeys: 'severity',
      step: '60s',
    },
  ];
}

function variables(): object[] {
  return [
    { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', refresh: 1 },
    {
      name: 'instance',
      label: 'Process',
      type: 'query',
      datasource: DATASOURCE,
      query: { query: 'label_values(cairn_build_info, instance)', refId: 'instance' },
      definition: 'label_values(cairn_build_info, instance)',
      includeAll: true,
      allValue: '.+',
      multi: true,
      current: { text: 'All', value: '$__all' },
      refresh: 2,
      sort: 1,
    },
  ];
}

/** Panels from left to right, rows from top to bottom. */
function layOut(rows: readonly Row[]): object[] {
  const placed: object[] = [];
  let top = 0;
  for (const row of rows) {
    const gridPos = { x: 0, y: top, w: COLUMNS, h: 1 };
    placed.push({ id: placed.length + 1, type: 'row', title: row.title, gridPos, collapsed: false, panels: [] });
    const { places, height } = placesOf(row);
    for (const { panel, x, y, w, h } of places) {
      placed.push(toPanel(panel, { id: placed.length + 1, gridPos: { x, y: top + 1 + y, w, h } }));
    }
    top += 1 + height;
  }
  return placed;
}

export interface Place {
  readonly panel: Panel;
  /** In units of the grid, from the top left corner of the row. */
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** A panel that does not fit beside the others begins a new line. */
export function placesOf({ panels }: Row): { places: readonly Place[]; height: number } {
  const places: Place[] = [];
  let [x, y, lineHeight] = [0, 0, 0];
  for (const panel of panels) {
    const [w, h] = [panel.width ?? WIDTH[panel.kind], HEIGHT[panel.kind]];
    if (x + w > COLUMNS) [x, y, lineHeight] = [0, y + lineHeight, 0];
    places.push({ panel, x, y, w, h });
    x += w;
    lineHeight = Math.max(lineHeight, h);
  }
  return { places, height: y + lineHeight };
}

function toPanel(panel: Panel, { id, gridPos }: { id: number; gridPos: object }): object {
  return {
    id,
    gridPos,
    title: panel.title,
    description: panel.description,
    datasource: DATASOURCE,
    targets: panel.queries.map(({ expr, legend }, at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      ...(panel.kind === 'stat' ? { instant: true } : { range: true }),
    })),
    ...(panel.more === undefined ? {} : { links: [{ title: 'More', url: addressOf(panel.more) }] }),
    ...(panel.kind === 'stat' ? statOf(panel) : linesOf(panel)),
  };
}

function addressOf(uid: string): string {
  return `/d/${uid}?\${__url_time_range}&\${__all_variables}`;
}

function statOf({ unit, thresholds }: Panel): object {
  return {
    type: 'stat',
    options: {
      colorMode: thresholds === undefined ? 'none' : 'background',
      graphMode: 'none',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
    fieldConfig: { defaults: { unit, thresholds: toSteps(thresholds) }, overrides: [] },
  };
}

function linesOf({ unit, thresholds, isStacked = false }: Panel): object {
  return {
    type: 'timeseries',
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: toSteps(thresholds),
        custom: {
          lineWidth: 1,
          fillOpacity: isStacked ? 30 : 5,
          stacking: { mode: isStacked ? 'normal' : 'none', group: 'A' },
          showPoints: 'never',
          thresholdsStyle: { mode: thresholds === undefined ? 'off' : 'dashed' },
        },
      },
      overrides: [],
    },
  };
}

function toSteps({ warning, critical, isFloor = false }: Thresholds = {}): object {
  const marks = [
    { color: COLOURS.warning, value: warning },
    { color: COLOURS.critical, value: critical },
  ].filter(({ value }) => value !== undefined);
  // A step holds from its value upwards, so what is bad when low begins with the worst colour.
  const steps = isFloor
    ? [...marks.toReversed(), { color: COLOURS.good }].map((step, at, all) => ({
        color: step.color,
        value: at === 0 ? null : (all[at - 1] as { value: number }).value,
      }))
    : [{ color: COLOURS.good, value: null }, ...marks];
  return { mode: 'absolute', steps };
}
