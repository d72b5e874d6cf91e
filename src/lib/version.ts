import about from "../../package.json" with { type: "json" };

/** The release that this process runs. */
export const version: string = about.version;
