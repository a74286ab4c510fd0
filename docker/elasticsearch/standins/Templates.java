package arecall.standins;

import com.github.mustachejava.DefaultMustacheFactory;
import com.github.mustachejava.Mustache;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.elasticsearch.common.Strings;
import org.elasticsearch.script.ScriptContext;
import org.elasticsearch.script.ScriptEngine;
import org.elasticsearch.script.TemplateScript;
import org.elasticsearch.xcontent.XContentBuilder;
import org.elasticsearch.xcontent.json.JsonXContent;

/**
 * Stands in for the module lang-mustache: renders templates by the same library, with {@code toJson} and {@code join}.
 *
 * <p>As there, a value is escaped for JSON, what is not there is nothing, and {@code toJson} of a plain value is its bare text. Not
 * here: other delimiters of {@code join}, {@code url}, and functions of what a section is about.
 */
final class Templates implements ScriptEngine {
    @Override
    public String getType() {
        return "mustache";
    }

    @Override
    public Set<ScriptContext<?>> getSupportedContexts() {
        return Set.of(TemplateScript.CONTEXT, TemplateScript.INGEST_CONTEXT);
    }

    @Override
    public <F> F compile(String name, String source, ScriptContext<F> context, Map<String, String> options) {
        Mustache template = new Json().compile(new StringReader(source), name == null ? "inline" : name);
        TemplateScript.Factory factory = parameters -> new TemplateScript(parameters) {
            @Override
            public String execute() {
                return render(template, parameters);
            }
        };
        return context.factoryClazz.cast(factory);
    }

    private static String render(Mustache template, Map<String, Object> parameters) {
        Map<String, Object> scope = new HashMap<>(parameters);
        scope.put("toJson", (Function<String, String>) path -> json(find(parameters, path)));
        scope.put("join", (Function<String, String>) path -> joined(find(parameters, path)));
        StringWriter text = new StringWriter();
        template.execute(text, scope);
        return text.toString();
    }

    private static Object find(Object from, String path) {
        Object found = from;
        for (String part : path.strip().split("\\.")) {
            found = found instanceof Map<?, ?> map ? map.get(part) : null;
        }
        return found instanceof Object[] array ? List.of(array) : found;
    }

    private static String json(Object value) {
        if (value == null) {
            return "";
        }
        if ((value instanceof Iterable || value instanceof Map) == false) {
            return value.toString();
        }
        try (XContentBuilder builder = JsonXContent.contentBuilder()) {
            return Strings.toString(builder.value(value));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static String joined(Object value) {
        if (value instanceof List<?> list) {
            return Json.escaped(list.stream().map(String::valueOf).collect(Collectors.joining(",")));
        }
        return value == null ? "" : Json.escaped(value.toString());
    }

    /** Escapes values for a string of JSON. The library's own escapes are those of HTML. */
    private static final class Json extends DefaultMustacheFactory {
        @Override
        public void encode(String value, Writer into) {
            try {
                into.write(escaped(value));
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }

        static String escaped(String value) {
            StringBuilder text = new StringBuilder(value.length());
            value.chars().forEach(character -> {
                if (character == '"' || character == '\\') {
                    text.append('\\').append((char) character);
                } else if (character < ' ') {
                    text.append(String.format("\\u%04x", character));
                } else {
                    text.append((char) character);
                }
            });
            return text.toString();
        }
    }
}
