/** Dashboards as they are written here, and their translation to Grafana's JSON model (schema version 39). */
export interface Dashboard {
  /**
   * Part of the dashboard's address, and the name of its file. It must not change, since links and bookmarks hold it.
   */
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
  /** Meaning of the panel and what to look for; Grafana shows it behind an icon. */
  readonly description: string;
  /** Form of the panel: a number, or lines over time. */
  readonly kind: 'stat' | 'lines';
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Width in columns, of which a row has 24; by default 4 for a stat and 8 for lines. */
  readonly width?: number;
  /** Values from which on the panel is coloured; they equal those of the alerts. */
  readonly thresholds?: Thresholds;
  /** Whether lines are stacked, because they are parts of a whole. */
  readonly isStacked?: boolean;
  /** Uid of the dashboard with more detail. */
  readonly more?: string;
  /** Why the panel may be empty for a service under load with Redis and a provider; without a reason it must not be. */
  readonly mayBeEmpty?: string;
}

interface Query {
  readonly expr: string;
  /** Name of the line; may contain labels such as `{{step}}`. */
  readonly legend: string;
}

interface Thresholds {
  readonly warning?: number;
  readonly critical?: number;
  /** Whether low values are bad: the panel is then red below `critical`. */
  readonly isFloor?: boolean;
}

/** Grafana's ids of units. `cpm` is events a minute, `percentunit` a share from 0 to 1. */
export type Unit = 'short' | 's' | 'bytes' | 'Bps' | 'percentunit' | 'reqps' | 'ops' | 'cpm' | 'currencyUSD';

/** Data source: the Prometheus that the reader picks. */
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

/** Annotations on all panels of every dashboard. */
function annotations(): object[] {
  return [
    {
      name: 'Restarts',
      datasource: DATASOURCE,
      enable: true,
      iconColor: 'blue',
      // This marks the first minute of each process.
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

/** Positions of all panels: panels from left to right, rows from top to bottom. */
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
  /** Position in units of the grid, from the top left corner of the row. */
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Places the panels of a row; a panel that does not fit beside the others begins a new line. */
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
  // A step holds from its value upwards, so thresholds for low values begin with the worst colour.
  const steps = isFloor
    ? [...marks.toReversed(), { color: COLOURS.good }].map((step, at, all) => ({
        color: step.color,
        value: at === 0 ? null : (all[at - 1] as { value: number }).value,
      }))
    : [{ color: COLOURS.good, value: null }, ...marks];
  return { mode: 'absolute', steps };
}
