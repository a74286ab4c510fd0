package arecall.launcher;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.bootstrap.BootstrapInfo;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.KeyStoreWrapper;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * Starts an Elasticsearch node from the published jars.
 *
 * <p>Genuine: the node, its modules, and the reading of elasticsearch.yml and of the keystore. Ours: only the way there. Elastic's
 * own start ({@code server-cli}, and the agent that confines what modules may do) is not published.
 */
public final class Launcher {
    private static final char[] NO_KEYSTORE_PASSWORD = new char[0];

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(System.getProperty("es.path.home"));
        Path config = Path.of(System.getProperty("es.path.conf"));
        Map<String, String> overrides = overrides(arguments);
        Settings homeOnly = Settings.builder().put("path.home", home.toString()).build();

        // Loggers that are asked for before the configuration is read would never be configured.
        LogConfigurator.registerErrorListener();
        LogConfigurator.setClusterName(overrides.getOrDefault("cluster.name", "docker-cluster"));
        LogConfigurator.setNodeName(overrides.getOrDefault("node.name", "arecall"));
        LogConfigurator.configure(new Environment(homeOnly, config), true);
        // Reads the system's properties now: it may not once modules are loaded.
        BootstrapInfo.init();

        Node node;
        try (KeyStoreWrapper keystore = keystore(config)) {
            Settings settings = Settings.builder().put(homeOnly).setSecureSettings(keystore).build();
            Environment environment =
                InternalSettingsPreparer.prepareEnvironment(settings, overrides, config, () -> "arecall");
            node = new Node(environment, PluginsLoader.createPluginsLoader(
                PluginsLoader.loadModulesBundles(environment.modulesDir(), false),
                PluginsLoader.loadPluginsBundles(environment.pluginsDir(), false),
                Map.of(),
                false));
        }

        // The node's threads end when it is closed; until then the main thread must not.
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception failure) {
                failure.printStackTrace();
            } finally {
                closed.countDown();
            }
        }, "shutdown"));
        node.start();
        closed.await();
    }

    /** Reads {@code -Ename=value} arguments; anything else is refused. */
    private static Map<String, String> overrides(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (argument.startsWith("-E") == false || equals < 3) {
                throw new IllegalArgumentException("not -Ename=value: " + argument);
            }
            settings.put(argument.substring(2, equals), argument.substring(equals + 1));
        }
        return settings;
    }

    /** Opens the keystore, made at the first start with the password of the user {@code elastic}. */
    private static KeyStoreWrapper keystore(Path config) throws Exception {
        KeyStoreWrapper keystore = KeyStoreWrapper.load(config);
        if (keystore != null) {
            keystore.decrypt(NO_KEYSTORE_PASSWORD);
            return keystore;
        }
        keystore = KeyStoreWrapper.create();
        keystore.setString("bootstrap.password", System.getenv("ELASTIC_PASSWORD").toCharArray());
        keystore.save(config, NO_KEYSTORE_PASSWORD);
        return keystore;
    }
}
