// Makes a project with an application, deploys it, shows the log as it is written, and tidies up.
import { createClient } from '@busbar/client'

const { BUSBAR_URL: url, BUSBAR_EMAIL: email, BUSBAR_PASSWORD: password, REPOSITORY } = process.env
const busbar = await createClient({ url }).signIn({ email, password })
const project = await busbar.projects.create({ name: 'Try it', slug: 'try-it' })
try {
  const source = { type: 'git', build_type: 'dockerfile', source_repo: REPOSITORY }
  const app = await busbar.applications.create(project, { name: 'Hello', ...source })
  const deployment = await busbar.applications.deploy(app)
  for await (const event of busbar.deployments.follow(deployment)) console.log(event.text)
  console.log('It answers at', (await busbar.applications.get(app)).direct_url)
} finally {
  await busbar.projects.delete(project)
}
