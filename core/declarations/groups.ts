/** What the groups hold by which the contract of the API sorts operations. */
const texts: Readonly<Record<string, string>> = {
  'Application Actions': 'Start, stop and restart what runs of an application, or make it anew.',
  'Application Deployments': 'Deploy an application, follow how it goes, go back, and deploy by a hook.',
  'Application Environment Variables': 'The variables that an application is started with.',
  'Application File Mounts': 'Files that containers of an application see and cannot change.',
  'Application Resources': 'What an application is built from, may use, and is checked by.',
  'Application Volumes & Backups':
    'Folders whose files outlive the containers of an application, and copies of them.',
  Applications: 'What is deployed: a source with its settings, in a project.',
  'Audit Logs (Admin)': 'Who did what to which resource.',
  'Backup Destinations':
    'Where backups of the databases and volumes of a project are kept, and which there are.',
  'Database Volumes & Backups': 'Backups of databases: when they are made, and how they come back.',
  'Personal Access Tokens': 'Credentials for scripts: of a scope, for a time, for all projects or some.',
  Platform: 'What this instance is and can do.',
  'Plugins (Admin)': 'The plugins of this instance: what they are set to, turned on and off.',
  Profile: 'The account of the caller: profile, password, second factor, sessions, alerts.',
  'Project Environment Variables': 'Variables that all applications of a project are started with.',
  'Project Registry Accounts': 'Accounts at image registries for the applications of one project.',
  Projects: 'What applications lie in, with those who may see and change them.',
  Public: 'What anybody may call: to sign in, to accept an invitation, to be well.',
  'Registry Accounts (Admin)': 'Accounts at image registries for all projects.',
  'Terminal Access': 'A shell in the container of an application, over a WebSocket.',
  'Users (Admin)': 'The accounts of this instance, and invitations to have one.'
}

interface Grouped {
  readonly group: string
  readonly plugin: string
}

/** The groups of these operations, each with what it holds. A group of third-party plugins is told by their names. */
export function describeGroups(operations: readonly Grouped[]): Array<{ name: string; description: string }> {
  const names = [...new Set(operations.map(({ group }) => group))].sort()
  return names.map(name => ({
    name,
    description: Object.hasOwn(texts, name) ? (texts[name] ?? '') : originOf(name, operations)
  }))
}

function originOf(name: string, operations: readonly Grouped[]): string {
  const plugins = new Set(operations.filter(({ group }) => group === name).map(({ plugin }) => plugin))
  return `Operations of ${[...plugins].sort().join(', ')}.`
}
