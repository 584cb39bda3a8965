/** The library of charts that reports contain. */
declare const Plotly: { react(id: string, traces: unknown, layout: object, config: object): void };
